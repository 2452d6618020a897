"""A row of a conversation's timeline, and that of a tool call."""

from typing import NamedTuple

from conversations.events.log.timeline_reads import CallTimes

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


def call_row(call: CallTimes, depth: int) -> TimelineRow:
    """Return the row of a tool call."""
    last = call.finished_seq or call.called_seq
    words = "" if call.run else f"called by {call.agent}" if call.agent else ""
    span = (call.began_at, call.ended_at, call.called_seq, last)
    return TimelineRow("call", depth, call.name, words, *span, STATES.get(call.status, ""))
