"""The events of our own writing and those of the bus we know, as one tagged union (design 3.1). For OpenAPI and tests.

Reading is lenient (`envelopes.read`); these models say what we write strictly. No Django.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from conversations.kinds_base import BaseEvent, OurEvent
from conversations.kinds_replays import ReplayRequested
from conversations.kinds_steering import Forked, HandedBack, Paused, Resumed, RunStopping, TakenOver


class Message(BaseEvent):
    """An envelope that says something."""

    event: Literal["message"] = "message"
    sender: str
    recipient: str
    content: str | None
    metadata: dict[str, Any] = {}


class Control(BaseEvent):
    """An envelope that steers."""

    event: Literal["control"] = "control"
    sender: str
    recipient: str
    content: str | None
    metadata: dict[str, Any] = {}


class Token(OurEvent):
    """A piece of an answer while it is written; `index` restarts each turn."""

    event: Literal["token"]
    text: str
    index: int


class ToolStep(OurEvent):
    """A tool called, or its result."""

    event: Literal["tool_step"]
    name: str
    args: dict[str, Any] = {}
    status: Literal["start", "success", "error", "timeout"] | None = None
    tool_call_id: str | None = None


class Output(OurEvent):
    """The final text of a turn; its tokens were the preview."""

    event: Literal["output"]
    text: str
    usage: dict[str, Any] | None = None


class UserMessage(BaseEvent):
    """What a person typed, as the stream tells it."""

    event: Literal["user_message"]


class SignalSend(BaseEvent):
    """A signal sent."""

    event: Literal["signal_send"]


class SignalReceive(BaseEvent):
    """A signal received."""

    event: Literal["signal_recv"]


class Signal(BaseEvent):
    """A signal on the bus that names the conversation."""

    event: Literal["signal"]
    payload: Any = None


class DeadLetter(BaseEvent):
    """A message that an agent gave up on."""

    event: Literal["dead_letter"]
    agent: str
    envelope: dict[str, Any] = {}
    error: str | None = None


class Log(BaseEvent):
    """A line an agent logged."""

    event: Literal["log"]


class Opened(BaseEvent):
    """A conversation begins: its title, and who handles it."""

    event: Literal["conversation.opened"]
    title: str = ""
    handler: str | None = None
    parent: str | None = None
    forked_at: int | None = None


class Handoff(OurEvent):
    """One agent gives the conversation to another."""

    event: Literal["agent.handoff"]
    from_agent: str
    to_agent: str
    reason: str | None = None


class ResponseReceived(BaseEvent):
    """A client asks for a response (Open Responses): its input verbatim, secrets masked. `agent` is to answer it."""

    event: Literal["response.received"]
    response_id: str
    previous_response_id: str | None = None
    sender: str = ""
    recipient: str = ""
    model: str
    agent: str
    input: list[Any]
    instructions: str | None = None
    tools: list[Any] = []
    hosted: list[str] = []
    tool_choice: str | dict[str, Any] = "auto"
    allowed_tools: list[str] | None = None
    params: dict[str, Any] = {}
    store: bool = True
    stream: bool = False


class ResponseCompleted(OurEvent):
    """What the client is answered, whole, directly before its run's end."""

    event: Literal["response.completed"]
    run_id: str
    response_id: str
    status: Literal["completed", "failed", "incomplete", "cancelled"]
    output: list[Any] = []
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    model: str = ""


class HandlerChanged(OurEvent):
    """Another agent answers what is said to the conversation from now on."""

    event: Literal["conversation.handler"]
    handler: str


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


class ModelTurn(OurEvent):
    """One answer of a model: what it was offered, what of it it called, and what it spent. `tools` are hashes of
    schemas; `called` is `{name, schema}` in the order of the answer, schema null for a tool that was not offered."""

    event: Literal["model.turn"]
    run_id: str
    model: str
    demo: bool = False
    tools: list[str] = []
    called: list[dict[str, Any]] = []
    usage: dict[str, Any] | None = None
    duration_ms: float | None = None


class ApprovalRequested(OurEvent):
    """A tool call waits for a person's decision."""

    event: Literal["approval.requested"]
    run_id: str
    approval_id: str
    tool_call: str
    tool_call_id: str | None = None
    name: str
    args: Any = None
    args_raw: str | None = None
    why: str | None = None
    deadline: str | None = None


class ApprovalDecided(OurEvent):
    """The one decision about a call, made by `by`. `edit`: `args_raw` runs, `digest` is its SHA-256."""

    event: Literal["approval.decided"]
    run_id: str
    approval_id: str
    tool_call: str
    decision: Literal["approve", "reject", "respond", "edit"]
    by: str = ""
    message: str | None = None
    reason: str | None = None
    output: str | None = None
    args: dict[str, Any] | None = None
    args_raw: str | None = None
    digest: str | None = None


class ApprovalCancelled(OurEvent):
    """A question that nobody needs to decide any more: its run ended. The principal is who ended it."""

    event: Literal["approval.cancelled"]
    run_id: str
    approval_id: str
    tool_call: str
    reason: str


class ApprovalExpired(OurEvent):
    """A question whose time was up before anybody decided it."""

    event: Literal["approval.expired"]
    run_id: str
    approval_id: str
    tool_call: str
    reason: str | None = None


class ApprovalEscalated(OurEvent):
    """A question that nobody decided for long: somebody else is told of it. It stays open."""

    event: Literal["approval.escalated"]
    run_id: str
    approval_id: str
    tool_call: str
    to: str
    reason: str | None = None


class PolicyRefused(OurEvent):
    """A call that a rule stopped before anybody was asked."""

    event: Literal["policy.refused"]
    run_id: str
    tool_call: str
    name: str
    reason: str


class Gap(BaseEvent):
    """Events that were lost before they reached the record. `lost` is None where nobody can know how many."""

    event: Literal["record.gap"]
    reason: str
    why: str = ""
    topic: str = ""
    lost: int | None = None
    since: str | None = None
    until: str | None = None


Known = Annotated[
    Message
    | Control
    | Token
    | ToolStep
    | Output
    | UserMessage
    | SignalSend
    | SignalReceive
    | Signal
    | DeadLetter
    | Log
    | Opened
    | Forked
    | Handoff
    | ResponseReceived
    | ResponseCompleted
    | HandlerChanged
    | Paused
    | Resumed
    | TakenOver
    | HandedBack
    | RunQueued
    | RunStarted
    | RunWaiting
    | RunResumed
    | RunDone
    | RunFailed
    | RunStopping
    | RunCancelled
    | RunInterrupted
    | RunIncompatible
    | ModelTurn
    | ApprovalRequested
    | ApprovalDecided
    | ApprovalCancelled
    | ApprovalExpired
    | ApprovalEscalated
    | PolicyRefused
    | ReplayRequested
    | Gap,
    Field(discriminator="event"),
]


def names() -> list[str]:
    """Answer every kind of the union."""
    models = get_args(get_args(Known)[0])
    return [get_args(model.model_fields["event"].annotation)[0] for model in models]
