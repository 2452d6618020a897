"""Hostile content of the sample data, for tests of everything that draws foreign text. Data only; nobody runs it."""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

_LINES = (".txt", ".md")
MARKDOWN = (
    "# {0}\n```{0}\n{0}\n```\n[{0}]({0}) ![{0}](<{0}> '{0}') <{0}>\n\n| {0} | {0} |\n|---|---|\n| {0} | {0} |\n\n{0}"
)


def payloads(sample: int | None = None) -> list[str]:
    """Return every payload of the `hostile-*` folders, or a fixed sample of them. Skips the test without any."""
    texts = _all(Path(settings.SAMPLES_DIR))
    if not texts:
        pytest.skip(f"no hostile samples in {settings.SAMPLES_DIR}; set SWITCHBOARD_SAMPLES_DIR")
    if sample is None or sample >= len(texts):
        return list(texts)
    return random.Random(7).sample(texts, sample)


def places(text: str) -> Iterator[dict[str, Any]]:
    """Put the text into every place of a payload that a stranger can fill: of every kind we know, and one we do not."""
    yield {"type": "message", "sender": text, "recipient": text, "content": text, "metadata": {text: text}}
    yield {"type": "message", "sender": f"agent:{text}", "recipient": f"chat:{text}", "content": MARKDOWN.format(text)}
    yield {"type": "control", "sender": text, "recipient": text, "content": json.dumps({text: text})}
    yield {"event": "token", "agent": text, "text": text, "index": 0}
    yield {"event": "output", "agent": text, "text": MARKDOWN.format(text), "usage": {text: text}}
    yield {"event": "output", "agent": text, "text": json.dumps({text: {text: [text]}})}
    yield {"event": "user_message", "sender": text, "text": text, "created_at": text}
    yield {"event": "log", "level": text, "component": text, "message": text}
    yield {"event": "signal_send", "agent": text, "topic": text}
    yield {"event": "conversation.opened", "title": text, "handler": text}
    yield {"event": "conversation.moved", "to": text, "reason": text}
    yield {"event": "conversation.forked", "parent": text, "forked_at": 1, "title": text, "handler": text, "by": text}
    yield {"event": "agent.handoff", "from_agent": text, "to_agent": text, "reason": text}
    yield {"event": "record.gap", "reason": text, "why": text, "topic": text, "since": text, "lost": text}
    yield {"event": text[:64], "words": text, text: [text]}
    step = {"event": "tool_step", "agent": text, "name": text, "tool_call_id": text}
    yield {**step, "args": {text: text}, "args_raw": text, "status": "start"}
    yield {**step, "result_summary": {text: text}, "status": "success"}
    yield {**step, "tool_call_id": f"{text} ", "args": text, "error": text, "status": "error"}


@cache
def _all(folder: Path) -> tuple[str, ...]:
    files = sorted(path for path in folder.glob("hostile-*/*") if not path.name.startswith(("LICENSE", "PROVENANCE")))
    return tuple(dict.fromkeys(text for path in files for text in _read(path) if text.strip()))


def _read(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json":
        yield from _strings(json.loads(text))
    else:
        yield text
        if path.suffix in _LINES:
            yield from text.split("\n")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
