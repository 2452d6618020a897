"""What conventions read of a span: an agent's run, an answer of a model, a tool call or a handoff, and what was said.

Each convention fills in what those before it left empty (`conventions.read`)."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal["", "agent", "model", "tool", "handoff"]
Role = Literal["system", "user", "assistant", "tool"]


class Call(NamedTuple):
    """A tool call as a message tells it."""

    id: str
    name: str
    args: Any  # any JSON, or the text that the model wrote


class Result(NamedTuple):
    """What a tool gave, as a message tells it."""

    id: str
    output: Any  # any JSON


class Message(NamedTuple):
    """One message of a history or an answer."""

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    reasoning: str = ""
    name: str = ""


class Usage(NamedTuple):
    """The tokens of one answer; 0 where not told."""

    input: int = 0
    output: int = 0
    cached: int = 0


NOTHING_SPENT = Usage()


@dataclass(slots=True)
class SpanReading:
    """What is known of one span. Empty: nothing of what the record shows."""

    kind: Kind = ""
    conversation: str = ""
    agent: str = ""
    model: str = ""
    usage: Usage = NOTHING_SPENT
    inputs: list[Message] = field(default_factory=list)
    outputs: list[Message] = field(default_factory=list)
    call: Call | None = None
    output: Any = None  # a tool's: any JSON
    handoff: tuple[str, str] = ("", "")
    has_tool_spans: bool = False  # calls have spans of their own: messages need not tell them
