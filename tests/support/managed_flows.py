"""Recorded approval flows of managed agents (`SWITCHBOARD_SAMPLES_DIR`), read without the project's code: what was
asked of whom, what was decided, what came of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import settings

FILES = sorted((Path(settings.SAMPLES_DIR) / "anthropic-managed-agent-events").glob("*.jsonl"))
needs_flows = pytest.mark.skipif(not FILES, reason="no anthropic-managed-agent-events in SWITCHBOARD_SAMPLES_DIR")


class Call(NamedTuple):
    """A call: `result` is what it gave, by the tool or by who was asked (`is_answered`); `is_allowed`: as a person
    decided, None where nobody was asked."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str
    is_answered: bool
    is_allowed: bool | None


class Flow(NamedTuple):
    """What a person said, the turns of the model (calls, or words at the end), and the ids that it stopped for."""

    words: str
    turns: list[list[Call] | str]
    stopped_for: list[str]

    @property
    def calls(self) -> list[Call]:
        """All calls."""
        return [call for turn in self.turns if not isinstance(turn, str) for call in turn]

    @property
    def answer(self) -> str:
        """What the agent says at the end."""
        return "".join(turn for turn in self.turns if isinstance(turn, str))


def flow_of(path: Path) -> Flow:
    """Read a recorded flow."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    events = [event for name, event in lines if name.endswith("events.stream")]
    results = {
        event[key]: _text(event)
        for event in events
        for key in event
        if key.endswith("tool_use_id") and "content" in event
    }
    allowed = {e["tool_use_id"]: e["result"] == "allow" for e in events if e["type"] == "user.tool_confirmation"}
    words = next(_text(event) for event in events if event["type"] == "user.message")
    stops = [e["stop_reason"] for e in events if e["type"] == "session.status_idle"]
    return Flow(
        words, list(_turns(events, results, allowed)), [id_ for stop in stops for id_ in stop.get("event_ids", [])]
    )


def _turns(events: list[Any], results: dict[str, str], allowed: dict[str, bool]) -> Iterator[list[Call] | str]:
    calls: list[Call] = []
    for event in events:
        kind, id_ = event["type"], event["id"]
        if kind.endswith("tool_use"):
            is_answered = kind == "agent.custom_tool_use"
            calls.append(Call(id_, event["name"], event["input"], results[id_], is_answered, allowed.get(id_)))
        elif kind == "agent.message":
            yield _text(event)
        elif kind == "span.model_request_end" and calls:
            yield calls
            calls = []


def _text(event: Any) -> str:
    return "".join(part["text"] for part in event["content"] if part["type"] == "text")
