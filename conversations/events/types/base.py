"""What the schemas of all events have in common."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_FILLED_IN = ("event", "conversation_id")  # by whoever writes an event; whoever reads one may count on them


def _require_filled_in(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Have the schema tell what is in a payload: what its constructor fills in is there, too."""
    required = schema.get("required", [])
    for name in _FILLED_IN:
        if name not in required and not (name == "event" and issubclass(model, Envelope)):
            schema["properties"][name].pop("default", None)
            required = [*required, name]
    schema["required"] = required


class BaseEvent(BaseModel):
    """What every event may say of itself."""

    # Built at the first use: what we write is checked by msgspec, and few commands read a schema.
    model_config = ConfigDict(extra="allow", json_schema_extra=_require_filled_in, defer_build=True)

    id: str | None = None
    conversation_id: str = ""
    created_at: str | None = None

    @classmethod
    def kind(cls) -> str:
        """Return the name of the event's type."""
        return str(cls.model_fields["event"].default)


class Envelope(BaseEvent):
    """What envelopes say: on the wire their kind is their `type`."""

    type: str | None = None
    sender: str
    recipient: str
    content: str | None
    run_id: str | None = None
    metadata: dict[str, Any] = {}


class RunEvent(BaseEvent):
    """What events of runs say besides."""

    run_id: str | None = None
    agent: str | None = None
    turn: int | None = None
    parent_call: str | None = None  # the call that the run inside it is of


class CallEvent(RunEvent):
    """What events of a tool call say of it: its tool's identity, and the arguments as read and as they came."""

    tool_call: str | None = None
    tool_call_id: str | None = None
    name: str = ""
    namespace: str | None = None
    qualified_name: str | None = None
    lookup_key: str | None = None
    origin: str | None = None
    mcp_server: str | None = None
    schema_hash: str | None = Field(None, alias="schema")
    effect: str | None = None
    args: dict[str, Any] | str | None = None  # a text where they are too large for one event
    args_raw: str | None = None
    replay_of: str | None = None
    by: str | None = None
    reason: str | None = None


class RunEndEvent(RunEvent):
    """What the ends of runs say: each of `calls` may or may not have had its effect; `by` ended it."""

    run_id: str
    run_kind: Literal["agent", "replay", "recording", "external"] = "agent"
    calls: list[str] = []
    by: str | None = None
    duration_ms: float | None = None
