"""Langfuse's SDKs: the kind of an observation, its input and output, and the session of its trace."""

from conversations.telemetry import message_shapes
from conversations.telemetry.reading import Call, Kind, SpanReading, Usage
from conversations.telemetry.span import Span

_KINDS: dict[str, Kind] = {"agent": "agent", "generation": "model", "tool": "tool", "retriever": "tool"}


def read(span: Span, reading: SpanReading) -> None:
    """Fill in what the SDKs tell."""
    reading.conversation = reading.conversation or span.text(
        "langfuse.session.id", "langfuse.trace.session_id", "session.id"
    )
    kind = span.text("langfuse.observation.type").lower()
    if kind not in _KINDS:
        return
    reading.kind = reading.kind or _KINDS[kind]
    asked_for = message_shapes.decoded(span.attributes.get("langfuse.observation.input"))
    answered = message_shapes.decoded(span.attributes.get("langfuse.observation.output"))
    if kind == "generation":
        reading.model = reading.model or span.text("langfuse.observation.model.name")
        reading.inputs = reading.inputs or message_shapes.messages_of(asked_for)
        reading.outputs = reading.outputs or message_shapes.messages_of(answered, "assistant")
        spent = message_shapes.decoded(span.attributes.get("langfuse.observation.usage_details"))
        if isinstance(spent, dict) and reading.usage == Usage():
            reading.usage = Usage(*(n if type(n := spent.get(w)) is int else 0 for w in ("input", "output")))
    elif _KINDS[kind] == "tool":
        reading.call = reading.call or Call("", span.name, asked_for)
        reading.output = answered if reading.output is None else reading.output
    else:
        reading.agent = reading.agent or span.name
    if span.text("langfuse.observation.level") == "ERROR" and span.error is None:
        span.error = span.text("langfuse.observation.status_message") or "error"
