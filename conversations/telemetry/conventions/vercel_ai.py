"""The Vercel AI SDK: `ai.*` attributes; the inner spans are the model's, the outer ones those of who asked."""

from conversations.telemetry import message_shapes
from conversations.telemetry.reading import Call, Message, SpanReading, Usage
from conversations.telemetry.span import Span

_INNER = (".doGenerate", ".doStream")
_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def read(span: Span, reading: SpanReading) -> None:
    """Fill in what the SDK tells."""
    operation = span.text("ai.operationId")
    if not operation:
        return
    reading.has_tool_spans = True
    reading.conversation = reading.conversation or span.text("ai.telemetry.metadata.sessionId")
    reading.agent = reading.agent or span.text("ai.telemetry.functionId")
    reading.model = reading.model or span.text("ai.response.model", "ai.model.id")
    if operation == "ai.toolCall":
        reading.kind = "tool"
        if reading.call is None:
            args = message_shapes.decoded(span.attributes.get("ai.toolCall.args"))
            reading.call = Call(span.text("ai.toolCall.id"), span.text("ai.toolCall.name") or span.name, args)
        if reading.output is None:
            reading.output = message_shapes.decoded(span.attributes.get("ai.toolCall.result"))
    elif operation.endswith(_INNER):
        reading.kind = "model"
        if reading.usage == Usage():
            reading.usage = Usage(
                span.number("ai.usage.inputTokens", "ai.usage.promptTokens"),
                span.number("ai.usage.outputTokens", "ai.usage.completionTokens"),
                span.number("ai.usage.cachedInputTokens"),
            )
        reading.inputs = reading.inputs or message_shapes.messages_of(span.attributes.get("ai.prompt.messages"))
        reading.outputs = reading.outputs or _answer(span)
    elif operation in _OUTER:
        reading.kind = "agent"
        reading.inputs = reading.inputs or _asked_of(span)
        reading.outputs = reading.outputs or _answer(span)


def _asked_of(span: Span) -> list[Message]:
    prompt = message_shapes.decoded(span.attributes.get("ai.prompt"))
    if not isinstance(prompt, dict):
        return message_shapes.messages_of(prompt)
    system = message_shapes.messages_of(prompt.get("system"), "system")
    return [*system, *message_shapes.messages_of(prompt.get("messages") or prompt.get("prompt"))]


def _answer(span: Span) -> list[Message]:
    text = span.text("ai.response.text", "ai.response.object")
    calls = message_shapes.decoded(span.attributes.get("ai.response.toolCalls"))
    message = message_shapes.message_of({"content": text, "tool_calls": calls}, "assistant")
    return [message] if message else []
