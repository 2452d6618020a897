"""The events of our own writing and those of the bus we know, as one tagged union (design 3.1). For OpenAPI and tests.

Reading is lenient (`envelopes.read`); these models say what we write strictly. No Django.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field


class _Event(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: str | None = None
    conversation_id: str
    created_at: str | None = None


class _Ours(_Event):
    run_id: str | None = None
    agent: str | None = None
    turn: int | None = None


class Message(_Event):
    """An envelope that says something."""

    event: Literal["message"] = "message"
    sender: str
    recipient: str
    content: str | None
    metadata: dict[str, Any] = {}


class Control(_Event):
    """An envelope that steers."""

    event: Literal["control"] = "control"
    sender: str
    recipient: str
    content: str | None
    metadata: dict[str, Any] = {}


class Token(_Ours):
    """A piece of an answer while it is written; `index` restarts each turn."""

    event: Literal["token"]
    text: str
    index: int


class ToolStep(_Ours):
    """A tool called, or its result."""

    event: Literal["tool_step"]
    name: str
    args: dict[str, Any] = {}
    status: Literal["start", "success", "error"] | None = None
    tool_call_id: str | None = None


class Output(_Ours):
    """The final text of a turn; its tokens were the preview."""

    event: Literal["output"]
    text: str
    usage: dict[str, Any] | None = None


class UserMessage(_Event):
    """What a person typed, as the stream tells it."""

    event: Literal["user_message"]


class SignalSend(_Event):
    """A signal sent."""

    event: Literal["signal_send"]


class SignalReceive(_Event):
    """A signal received."""

    event: Literal["signal_recv"]


class Signal(_Event):
    """A signal on the bus that names the conversation."""

    event: Literal["signal"]
    payload: Any = None


class DeadLetter(_Event):
    """A message that an agent gave up on."""

    event: Literal["dead_letter"]
    agent: str
    envelope: dict[str, Any] = {}
    error: str | None = None


class Log(_Event):
    """A line an agent logged."""

    event: Literal["log"]


class Opened(_Event):
    """A conversation begins: its title, and who handles it."""

    event: Literal["conversation.opened"]
    title: str = ""
    handler: str | None = None


class Handoff(_Ours):
    """One agent gives the conversation to another."""

    event: Literal["agent.handoff"]
    from_agent: str
    to_agent: str
    reason: str | None = None


class Gap(_Event):
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
    | Handoff
    | Gap,
    Field(discriminator="event"),
]


def names() -> list[str]:
    """Answer every kind of the union."""
    models = get_args(get_args(Known)[0])
    return [get_args(model.model_fields["event"].annotation)[0] for model in models]
