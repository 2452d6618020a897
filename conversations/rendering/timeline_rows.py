"""A row of a conversation's timeline, that of a tool call, and what a run waits for."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from conversations.events.log.timeline_reads import CallTimes
from conversations.rendering.event_rows import line

QUEUE_US = 1_000_000  # a shorter time in the queue is not shown
STATES = {"done": "done", "failed": "failed", "incompatible": "failed", "cancelled": "rejected", "waiting": "waiting"}
STATES |= {
    "delivered": "done",
    "interrupted": "unknown",
    "running": "running",
    "queued": "queued",
    "executing": "running",
}
STATES |= {"timeout": "failed", "unknown": "unknown", "called": "running"} | dict.fromkeys(
    ("rejected", "blocked"), "rejected"
)


class ModelTime(NamedTuple):
    """A time when a model worked, from its start to its end (µs UTC), and the event that reports it."""

    start: int
    end: int
    seq: int


class TimelineRow(NamedTuple):
    """One row: what it is, whose, start and end (µs UTC; None: ongoing), its first and last event, and the times within
    it when a model worked."""

    kind: str  # run, agent, call, wait, queue or message
    depth: int
    name: str  # of an agent or sender (as on the wire), or of a tool
    words: str
    start: int
    end: int | None
    seq: int
    last_seq: int
    state: str = ""
    turns: tuple[ModelTime, ...] = ()
    principal: str = ""  # of a message


class RequestedTools:
    """The tools that a run requested approval for since it last waited."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def request(self, body: Mapping[str, Any]) -> None:
        """Take in an `approval.requested`."""
        self._names.append("more budget" if body.get("origin") == "budget" else line(body.get("name")))

    def words_of_wait(self, body: Mapping[str, Any]) -> str:
        """Return what a run waits for, by its `run.waiting`."""
        names, self._names = list(dict.fromkeys(filter(None, self._names))), []
        reason = line(body.get("reason"))
        if reason == "pause":
            return "paused"
        if reason == "server":
            return f"waiting for MCP server {line(body.get('server'))}"
        return f"waiting for approval of {', '.join(names)}" if names else "waiting for approval"


def call_row(call: CallTimes, depth: int) -> TimelineRow:
    """Return the row of a tool call."""
    last = call.finished_seq or call.called_seq
    words = "" if call.run else f"called by {call.agent}" if call.agent else ""
    span = (call.began_at, call.ended_at, call.called_seq, last)
    return TimelineRow("call", depth, call.name, words, *span, STATES.get(call.status, ""))
