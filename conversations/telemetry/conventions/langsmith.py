"""LangSmith's OpenTelemetry export, of LangChain and LangGraph: the kind of a run, its thread, inputs and outputs."""

from typing import Any

from conversations.telemetry import message_shapes
from conversations.telemetry.reading import Call, Kind, Message, SpanReading
from conversations.telemetry.span import Span

_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool", "retriever": "tool"}
_THREADS = ("thread_id", "session_id", "conversation_id")


def read(span: Span, reading: SpanReading) -> None:
    """Fill in what LangSmith tells."""
    kind = span.text("langsmith.span.kind").lower()
    if not kind:
        return
    reading.has_tool_spans = True
    reading.conversation = reading.conversation or span.text(*(f"langsmith.metadata.{name}" for name in _THREADS))
    reading.agent = reading.agent or span.text("langsmith.metadata.lc_agent_name")
    reading.kind = reading.kind or _KINDS.get(kind, "" if span.parent_id else "agent")
    inputs, outputs = (
        message_shapes.decoded(span.attributes.get(f"gen_ai.{side}")) for side in ("prompt", "completion")
    )
    if reading.kind == "tool":
        _read_tool(span, reading, inputs, outputs)
    elif reading.kind:
        reading.inputs = reading.inputs or message_shapes.messages_of(inputs)
        reading.outputs = reading.outputs or _answers(outputs)
    if reading.kind == "agent":
        reading.agent = reading.agent or span.name


def _read_tool(span: Span, reading: SpanReading, inputs: Any, outputs: Any) -> None:  # Any: any JSON
    if outputs is None:  # another convention has it
        outputs = reading.output
    output = outputs.get("output", outputs) if isinstance(outputs, dict) else outputs
    message = message_shapes.tool_message_of(output)
    call_id = span.text("gen_ai.tool.call.id") or (message.id if message else "")
    reading.call = reading.call or Call(call_id, span.text("gen_ai.tool.name") or span.name, inputs)
    reading.output = message.output if message else output


def _answers(outputs: Any) -> list[Message]:
    """Return a model's generations, or, from a whole state, what came after the person's last message."""
    if isinstance(outputs, dict) and isinstance(outputs.get("generations"), list):
        outputs = outputs["generations"]
    messages = message_shapes.messages_of(outputs, "assistant")
    last = max((n for n, message in enumerate(messages, 1) if message.role == "user"), default=0)
    return messages[last:]
