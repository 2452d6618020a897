"""Counts taken from recorded files without the project's readers: what tests of `test_recordings_*` compare with."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

OWN = Path(__file__).resolve().parents[1] / "samples"
THEIRS = Path(settings.SAMPLES_DIR)


class Counts(NamedTuple):
    """What a conversation should show. `repeated` = call ids that are used more than once."""

    messages: int = 0
    tool_calls: int = 0
    errors: int = 0
    repeated: int = 0


def own_files() -> list[Path]:
    """Return our small samples."""
    return sorted(path for path in OWN.iterdir() if path.suffix in (".json", ".jsonl"))


def their_files() -> list[Path]:
    """Return the files of the three families in `SWITCHBOARD_SAMPLES_DIR`; empty where it is absent."""
    patterns = ("tau2-bench/*.json.gz", "tau-bench/*.jsonl", "who-and-when/*/*.json")
    return sorted(path for pattern in patterns for path in THEIRS.glob(pattern))


def counts_of(path: Path) -> list[Counts]:
    """Count each conversation of a file."""
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    if path.suffix == ".jsonl":
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
        if "role" in values[0]:
            return [_of_chat(values)]
        return [
            _of_display(v["messages_display"]) if "messages_display" in v else _of_chat(v["messages"]) for v in values
        ]
    value = json.loads(text)
    if isinstance(value, list):
        return [_of_chat(item["traj"]) for item in value] if "traj" in value[0] else [_of_chat(value)]
    if "simulations" in value:
        return [_of_simulation(simulation["messages"]) for simulation in value["simulations"]]
    return [_of_history(value["history"])]


def _of_chat(messages: list[dict[str, Any]]) -> Counts:
    calls = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    spoken = [m for m in messages if m["role"] in ("user", "assistant") and (m["content"] or not m.get("tool_calls"))]
    failed = [m for m in messages if m["role"] == "tool" and m["content"].startswith("Error:")]
    return Counts(len(spoken), len(calls), len(failed), _repeated(calls))


def _of_simulation(messages: list[dict[str, Any]]) -> Counts:
    calls = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    spoken = [m for m in messages if m["role"] != "tool" and (m["content"] or not m.get("tool_calls"))]
    return Counts(len(spoken), len(calls), sum(m.get("error") is True for m in messages), _repeated(calls))


def _of_display(text: str) -> Counts:
    starts = re.findall(r"(?:^|\n)(user|assistant|tool): (.*)", text)
    spoken = [words for role, words in starts if role != "tool" and words != "None"]
    tools = [words for role, words in starts if role == "tool"]
    return Counts(len(spoken), len(tools), sum(words.startswith("Error:") for words in tools))


def _of_history(history: list[dict[str, Any]]) -> Counts:
    roles = [entry.get("name") or entry["role"] for entry in history]
    return Counts(sum(not role.endswith(("(thought)", "(termination condition)")) for role in roles))


def _repeated(ids: list[str]) -> int:
    return sum(n > 1 for n in Counter(ids).values())
