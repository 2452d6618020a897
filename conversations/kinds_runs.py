"""The events of runs: how each comes to be, waits and ends. Part of `kinds`. No Django."""

from typing import Any, Literal

from conversations.kinds_base import OurEvent


class RunQueued(OurEvent):
    """A run waits for a worker. `input_seq` is the event it answers."""

    event: Literal["run.queued"]
    run_id: str
    agent: str
    run_kind: Literal["agent", "replay"] = "agent"
    input_seq: int
    parent_call: str | None = None
    reason: str | None = None
    response_id: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    socket: str | None = None


class RunStarted(OurEvent):
    """A worker has it; `attempt` is its fence (law F)."""

    event: Literal["run.started"]
    run_id: str
    attempt: int
    worker: str
    run_kind: Literal["agent", "replay"] = "agent"


class RunWaiting(OurEvent):
    """It waits for a person, or for an MCP server that is away (`detail`: what is wrong); no worker holds it."""

    event: Literal["run.waiting"]
    run_id: str
    reason: Literal["approval", "pause", "server"]
    server: str | None = None
    detail: str | None = None


class RunResumed(OurEvent):
    """What it waited for is there: it is queued again."""

    event: Literal["run.resumed"]
    run_id: str
    reason: str | None = None


class RunDone(OurEvent):
    """It ended well."""

    event: Literal["run.done"]
    run_id: str
    duration_ms: float | None = None
    usage: dict[str, Any] | None = None


class RunFailed(OurEvent):
    """It ended with an error: the real exception as text, without secrets. `place` is where: agent, turn, and of an
    answer that did not fit the path of its field, and why."""

    event: Literal["run.failed"]
    run_id: str
    reason: str
    error: str | None = None
    place: dict[str, Any] | None = None
    calls: list[str] = []


class RunCancelled(OurEvent):
    """A person ended it, or the worker had to. Each of `calls` may or may not have had its effect."""

    event: Literal["run.cancelled"]
    run_id: str
    reason: str | None = None
    calls: list[str] = []


class RunInterrupted(OurEvent):
    """Its worker is gone. Each of `calls` may or may not have had its effect; nothing is done again by itself."""

    event: Literal["run.interrupted"]
    run_id: str
    reason: str
    calls: list[str] = []


class RunIncompatible(OurEvent):
    """What it paused with does not fit the team of today."""

    event: Literal["run.incompatible"]
    run_id: str
    reason: str
    calls: list[str] = []
