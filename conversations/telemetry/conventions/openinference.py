"""OpenInference (Arize Phoenix): the span's kind, flattened messages, input and output as texts."""

from conversations.telemetry import message_shapes
from conversations.telemetry.reading import Call, Kind, Message, SpanReading, Usage
from conversations.telemetry.span import Span

_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
    "RETRIEVER": "tool",
}


def read(span: Span, reading: SpanReading) -> None:
    """Fill in what the conventions tell."""
    kind = span.text("openinference.span.kind").upper()
    if not kind:
        return
    reading.kind = reading.kind or _KINDS.get(kind, "")
    reading.conversation = reading.conversation or span.text("session.id")
    reading.agent = reading.agent or span.text("agent.name", "graph.node.id")
    if reading.kind in ("", "agent") and not reading.agent:  # one inside that names nobody is a step of the one around
        reading.agent = "" if span.parent_id else span.name
        reading.kind = "agent" if reading.agent and kind in ("AGENT", "CHAIN") else ""
    reading.model = reading.model or span.text("llm.model_name")
    if reading.kind == "model":
        _read_model(span, reading)
    elif reading.kind == "tool":
        _read_tool(span, reading)
    elif not span.parent_id:
        _read_root(span, reading)


def _read_model(span: Span, reading: SpanReading) -> None:
    if reading.usage == Usage():
        reading.usage = Usage(
            span.number("llm.token_count.prompt"),
            span.number("llm.token_count.completion"),
            span.number("llm.token_count.prompt_details.cache_read"),
        )
    attributes = span.attributes
    inputs = message_shapes.unflattened(attributes, "llm.input_messages") or attributes.get("input.value")
    reading.inputs = reading.inputs or message_shapes.messages_of(inputs)
    outputs = message_shapes.unflattened(attributes, "llm.output_messages") or attributes.get("output.value")
    reading.outputs = reading.outputs or message_shapes.messages_of(outputs, "assistant")


def _read_tool(span: Span, reading: SpanReading) -> None:
    if reading.call is None:
        args = message_shapes.decoded(span.attributes.get("input.value"))
        reading.call = Call(span.text("tool_call.id", "tool.id"), span.text("tool.name") or span.name, args)
    if reading.output is None:
        output = message_shapes.decoded(span.attributes.get("output.value"))
        answer = message_shapes.tool_message_of(output)
        if answer is not None:
            reading.call = reading.call._replace(id=reading.call.id or answer.id)
            output = answer.output
        reading.output = output


def _read_root(span: Span, reading: SpanReading) -> None:
    """Read what the outermost span was asked and answered, where that is plain words."""
    for side, messages in (("input", reading.inputs), ("output", reading.outputs)):
        text = span.text(f"{side}.value")
        is_plain = span.text(f"{side}.mime_type") in ("", "text/plain") and text[:1] not in ("{", "[")
        if text and is_plain and not messages:
            messages.append(Message("user" if side == "input" else "assistant", text))
