"""The events of our own writing and those of the bus we know, as one tagged union (design 3.1). For OpenAPI and tests.

Reading is lenient (`envelopes.read`); these models say what we write strictly. No Django.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from conversations.kinds_approvals import (
    ApprovalCancelled,
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalExpired,
    ApprovalRequested,
)
from conversations.kinds_base import BaseEvent, OurEvent
from conversations.kinds_replays import ReplayRequested
from conversations.kinds_runs import (
    RunCancelled,
    RunDone,
    RunFailed,
    RunIncompatible,
    RunInterrupted,
    RunQueued,
    RunResumed,
    RunStarted,
    RunWaiting,
)
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
