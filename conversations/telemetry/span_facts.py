"""What the conventions read of a span: an agent's run, a model's answer, a tool call or a handoff, and messages.

Each convention fills in what earlier ones left empty (`conventions.read`).
"""

from typing import Any, Literal, NamedTuple

import msgspec

Kind = Literal["", "agent", "model", "tool", "handoff"]
Role = Literal["system", "user", "assistant", "tool"]


class Call(NamedTuple):
    """A tool call in a message."""

    id: str
    name: str
    args: Any  # any JSON, or the text that the model wrote


class Result(NamedTuple):
    """A tool's result in a message."""

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
    """The tokens of one answer; 0 if not reported."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0

    @property
    def of_cache(self) -> dict[str, dict[str, int]]:
        """Return in the words of events what was read from a cache and written to one; empty for neither."""
        counts = {"cached_tokens": self.cached, "cache_write_tokens": self.cache_written}
        details = {name: number for name, number in counts.items() if number}
        return {"input_tokens_details": details} if details else {}


NOTHING_SPENT = Usage()


class SpanFacts(msgspec.Struct, gc=False):
    """What is known of one span. Empty if it has nothing that the record shows."""

    kind: Kind = ""
    conversation: str = ""
    agent: str = ""
    model: str = ""
    usage: Usage = NOTHING_SPENT
    inputs: list[Message] = []
    outputs: list[Message] = []
    call: Call | None = None
    output: Any = None  # a tool's: any JSON
    handoff: tuple[str, str] = ("", "")
    has_tool_spans: bool = False  # calls have spans of their own: messages need not tell them
