"""The Vercel AI SDK: `ai.*` attributes; the inner spans are the model's, the outer ones those of who asked."""

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import Call, Message, SpanFacts, Usage

_INNER = (".doGenerate", ".doStream")
_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what the SDK tells."""
    operation = span.text("ai.operationId")
    if not operation:
        return
    facts.has_tool_spans = True
    facts.conversation = facts.conversation or span.text("ai.telemetry.metadata.sessionId")
    facts.agent = facts.agent or span.text("ai.telemetry.functionId")
    facts.model = facts.model or span.text("ai.response.model", "ai.model.id")
    if operation == "ai.toolCall":
        facts.kind = "tool"
        if facts.call is None:
            args = message_shapes.decoded(span.attributes.get("ai.toolCall.args"))
            facts.call = Call(span.text("ai.toolCall.id"), span.text("ai.toolCall.name") or span.name, args)
        if facts.output is None:
            facts.output = message_shapes.decoded(span.attributes.get("ai.toolCall.result"))
    elif operation.endswith(_INNER):
        facts.kind = "model"
        if facts.usage == Usage():
            facts.usage = Usage(
                span.number("ai.usage.inputTokens", "ai.usage.promptTokens"),
                span.number("ai.usage.outputTokens", "ai.usage.completionTokens"),
                span.number("ai.usage.cachedInputTokens"),
            )
        facts.inputs = facts.inputs or message_shapes.messages_of(span.attributes.get("ai.prompt.messages"))
        facts.outputs = facts.outputs or _answer(span)
    elif operation in _OUTER:
        facts.kind = "agent"
        facts.inputs = facts.inputs or _asked_of(span)
        facts.outputs = facts.outputs or _answer(span)


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
