"""The events of runs: how each comes to be, works, waits and ends."""

from typing import Any, Literal

from conversations.events.event_type import OURS, PEOPLE, Lane, Row, RunEnd, Search, event_type
from conversations.events.projections import responses, turns
from conversations.events.projections.runs import step
from conversations.events.types.base import RunEndEvent, RunEvent


@event_type(
    Row(view="run_queued"), fold=responses.queued, authority=OURS, lane=Lane("queued to answer"),
    traits={"wakes_worker", "holds_run", "no_progress", "remembered"},
)  # fmt: skip
class RunQueued(RunEvent):
    """A run waits for a worker. `input_seq` is the event it answers; `at_next_step`: a run at work may take that in."""

    event: Literal["run.queued"] = "run.queued"
    run_id: str
    agent: str
    run_kind: Literal["agent", "replay", "recording", "external"] = "agent"
    input_seq: int
    reason: str | None = None
    by: str | None = None
    replay_of: str | None = None
    response_id: str | None = None
    previous_response_id: str | None = None
    must_wait: bool = False
    store: bool | None = None
    socket: str | None = None
    at_next_step: bool = False


@event_type(
    Row(view="run_started"), fold=step("running"), authority=OURS, level="steps", lane=Lane("started"),
    search=Search(is_indexed=False), traits={"holds_run", "remembered", "outlined"},
)  # fmt: skip
class RunStarted(RunEvent):
    """A worker has it; `attempt` is its fence (law F)."""

    event: Literal["run.started"] = "run.started"
    run_id: str
    attempt: int
    worker: str
    run_kind: Literal["agent", "replay", "recording", "external"] = "agent"


@event_type(
    Row(view="run_waiting"), fold=step("waiting"), authority=OURS, level="steps", lane=Lane("waiting"),
    traits={"holds_run"},
)  # fmt: skip
class RunWaiting(RunEvent):
    """It waits for a person, or for an MCP server that is away (`detail`: what is wrong); no worker holds it."""

    event: Literal["run.waiting"] = "run.waiting"
    run_id: str
    reason: Literal["approval", "pause", "server"]
    server: str | None = None
    detail: str | None = None


@event_type(
    Row(view="run_resumed"), fold=step("queued"), authority=OURS, lane=Lane("resumed"),
    traits={"wakes_worker", "holds_run"},
)  # fmt: skip
class RunResumed(RunEvent):
    """What it waited for is there: it is queued again."""

    event: Literal["run.resumed"] = "run.resumed"
    run_id: str
    reason: str | None = None
    by: str | None = None


@event_type(
    Row(view="run_done"), fold=step("done", is_end=True), authority=OURS, level="steps", lane=Lane("finished"),
    run_end=RunEnd(), traits={"wakes_worker", "holds_run"},
)  # fmt: skip
class RunDone(RunEndEvent):
    """It ended well."""

    event: Literal["run.done"] = "run.done"
    usage: dict[str, Any] | None = None


@event_type(
    Row(view="run_delivered"), fold=step("delivered", is_end=True), authority=OURS,
    lane=Lane("took in a message at its next step"), run_end=RunEnd(), traits={"holds_run", "remembered"},
)  # fmt: skip
class RunDelivered(RunEndEvent):
    """It does not begin: the message that it was to answer, `input_seq`, was delivered to the run `into`, which was at
    work, before that run's model was asked for the answer `step`."""

    event: Literal["run.delivered"] = "run.delivered"
    into: str
    step: int
    input_seq: int


@event_type(
    Row(view="run_failed"), fold=step("failed", is_end=True), authority=OURS, level="chat", state="failed",
    lane=Lane("failed", "error"), search=Search(is_error=True), alarm="run_failed",
    run_end=RunEnd("the run failed", "its run failed"), traits={"wakes_worker", "holds_run", "remembered"},
)  # fmt: skip
class RunFailed(RunEndEvent):
    """It ended with an error: the real exception as text, without secrets. `place` is where: agent, turn, and of an
    answer that did not fit the path of its field, and why."""

    event: Literal["run.failed"] = "run.failed"
    reason: str
    error: str | None = None
    place: dict[str, Any] | None = None


@event_type(
    Row(view="run_stopping"), authority=PEOPLE, author="principal",
    level="steps", lane=Lane("requested a stop", "reason"), done_verb="stopped it", traits={"no_progress"},
)  # fmt: skip
class RunStopping(RunEvent):
    """Somebody asked a run to end: after its turn (stop), or at once (cancel, which lets a call that has begun end for
    a few seconds, and abort, which does not). The run's end follows."""

    event: Literal["run.stopping"] = "run.stopping"
    run_id: str
    how: Literal["stop", "cancel", "abort"]
    run_kind: Literal["agent", "replay", "recording", "external"] = "agent"
    by: str = ""
    reason: str | None = None


@event_type(
    Row(view="run_cancelled"), fold=step("cancelled", is_end=True), authority=OURS, level="chat", state="rejected",
    lane=Lane("was stopped", "reason"), run_end=RunEnd("the run was stopped", "its run was stopped"),
    traits={"wakes_worker", "holds_run"},
)  # fmt: skip
class RunCancelled(RunEndEvent):
    """A person ended it, or the worker had to."""

    event: Literal["run.cancelled"] = "run.cancelled"
    reason: str | None = None


@event_type(
    Row(view="run_interrupted"), fold=step("interrupted", is_end=True), authority=OURS, level="chat", state="unknown",
    lane=Lane("was interrupted", "reason"), search=Search(is_error=True), alarm="run_failed",
    alarm_cause="its worker was lost",
    run_end=RunEnd("the run was interrupted", "its worker was lost"),
    traits={"wakes_worker", "holds_run"},
)  # fmt: skip
class RunInterrupted(RunEndEvent):
    """Its worker is gone, or did not renew its lease in time; nothing is done again by itself."""

    event: Literal["run.interrupted"] = "run.interrupted"
    reason: str


@event_type(
    Row(view="run_incompatible"), fold=step("incompatible", is_end=True), authority=OURS, level="chat", state="failed",
    lane=Lane("could not resume", "reason"), search=Search(is_error=True), alarm="run_failed",
    alarm_cause="it could not resume",
    run_end=RunEnd("the run could not resume", "its run could not resume"),
    traits={"holds_run"},
)  # fmt: skip
class RunIncompatible(RunEndEvent):
    """What it paused with does not fit the team of today."""

    event: Literal["run.incompatible"] = "run.incompatible"
    reason: str


@event_type(
    Row(view="agent_handoff"), level="steps", lane=Lane("handed off", "reason"), traits={"holds_run", "outlined"}
)
class Handoff(RunEvent):
    """One agent gives the conversation to another."""

    event: Literal["agent.handoff"] = "agent.handoff"
    from_agent: str
    to_agent: str
    reason: str | None = None


@event_type(
    Row(view="model_turn"), fold=turns.ours, authority=OURS, lane=Lane("asked the model", "model"),
    search=Search(is_indexed=False), traits={"holds_run", "leaves_state"},
)  # fmt: skip
class ModelTurn(RunEvent):
    """One answer of a model: what it was offered, what of it it called, and what it spent. `tools` are hashes of
    schemas; `called` is `{name, schema}` in the order of the answer, schema null for a tool that was not offered."""

    event: Literal["model.turn"] = "model.turn"
    run_id: str
    model: str
    demo: bool = False
    tools: list[str] = []
    called: list[dict[str, Any]] = []
    usage: dict[str, Any] | None = None
    duration_ms: float | None = None


@event_type(
    Row(view="model_call"), fold=turns.called, level="steps", lane=Lane("asked the model", "model"),
    search=Search(is_error=True, label="model call"),
)  # fmt: skip
class ModelCall(RunEvent):
    """One answer of a model that an external agent asked, as its telemetry tells it: what it spent, how long it took,
    and with `error` that there was none. What was said stands in messages and outputs."""

    event: Literal["model.call"] = "model.call"
    model: str = ""
    usage: dict[str, Any] | None = None
    duration_ms: float | None = None
    error: str | None = None
    trace_id: str | None = None
    span_id: str | None = None


@event_type(Row(view="stage"), name=".stage", level="steps", lane=Lane("reached stage", "stage"))
class Stage(RunEvent):
    """Where a team's context has come to; the kind is a team's own, such as `town_hall.stage`."""

    event: str = ""
    stage: str
