"""OpenLLMetry (Traceloop): the older flattened `gen_ai.prompt.0.content`, and `traceloop.*` of workflows and tools."""

from collections.abc import Iterable

from conversations.telemetry import message_shapes
from conversations.telemetry.reading import Call, Kind, SpanReading
from conversations.telemetry.span import Span

_OWN = ("traceloop.", "llm.", "gen_ai.handoff.", "gen_ai.completion.0", "gen_ai.prompt.0.role")
_KINDS: dict[str, Kind] = {"agent": "agent", "tool": "tool"}


def read(span: Span, reading: SpanReading) -> None:
    """Fill in what the library tells."""
    kind = span.text("traceloop.span.kind")
    reading.kind = reading.kind or _KINDS.get(kind, "")
    reading.conversation = reading.conversation or span.text(
        *(f"traceloop.association.properties.{name}" for name in ("session_id", "thread_id", "conversation_id"))
    )
    if kind == "agent":
        reading.agent = reading.agent or span.text("gen_ai.agent.name", "traceloop.entity.name")
    if reading.kind == "tool" and "gen_ai.tool.name" not in span.attributes:
        _read_tool(span, reading)
    if span.text("llm.request.type") in ("chat", "completion") and not reading.kind:
        reading.kind = "model"
    giver, taker = span.text("gen_ai.handoff.from_agent"), span.text("gen_ai.handoff.to_agent")
    if giver and taker:
        reading.kind, reading.handoff = "handoff", (giver, taker)
    _read_messages(span, reading)


def is_of_library(names: Iterable[str]) -> bool:
    """Return whether attributes are the library's own."""
    return any(name.startswith(_OWN) for name in names)


def _read_messages(span: Span, reading: SpanReading) -> None:
    if not reading.inputs and "gen_ai.prompt.0.role" in span.attributes:
        prompts = message_shapes.unflattened(span.attributes, "gen_ai.prompt")
        reading.inputs = message_shapes.messages_of(prompts)
    if not reading.outputs and "gen_ai.completion.0.role" in span.attributes:
        completions = message_shapes.unflattened(span.attributes, "gen_ai.completion")
        reading.outputs = message_shapes.messages_of(completions, "assistant")


def _read_tool(span: Span, reading: SpanReading) -> None:
    if reading.call is None:
        inputs = message_shapes.decoded(span.attributes.get("traceloop.entity.input"))
        args = inputs.get("inputs", inputs) if isinstance(inputs, dict) else inputs
        reading.call = Call("", span.text("traceloop.entity.name") or span.name, args)
    if reading.output is None:
        reading.output = message_shapes.decoded(span.attributes.get("traceloop.entity.output"))
