"""OpenInference (Arize Phoenix): the span's kind, flattened messages, input and output as texts."""

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import Call, Kind, Message, SpanFacts, Usage

_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
    "RETRIEVER": "tool",
}


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what the conventions tell."""
    kind = span.text("openinference.span.kind").upper()
    if not kind:
        return
    facts.kind = facts.kind or _KINDS.get(kind, "")
    facts.conversation = facts.conversation or span.text("session.id")
    facts.agent = facts.agent or span.text("agent.name", "graph.node.id")
    if facts.kind in ("", "agent") and not facts.agent:  # one inside that names nobody is a step of the one around
        facts.agent = "" if span.parent_id else span.name
        facts.kind = "agent" if facts.agent and kind in ("AGENT", "CHAIN") else ""
    facts.model = facts.model or span.text("llm.model_name")
    if facts.kind == "model":
        _read_model(span, facts)
    elif facts.kind == "tool":
        _read_tool(span, facts)
    elif not span.parent_id:
        _read_root(span, facts)


def _read_model(span: Span, facts: SpanFacts) -> None:
    if facts.usage == Usage():
        facts.usage = Usage(
            span.number("llm.token_count.prompt"),
            span.number("llm.token_count.completion"),
            span.number("llm.token_count.prompt_details.cache_read"),
            span.number("llm.token_count.prompt_details.cache_write"),
        )
    attributes = span.attributes
    inputs = message_shapes.unflattened(attributes, "llm.input_messages") or attributes.get("input.value")
    facts.inputs = facts.inputs or message_shapes.messages_of(inputs)
    outputs = message_shapes.unflattened(attributes, "llm.output_messages") or attributes.get("output.value")
    facts.outputs = facts.outputs or message_shapes.messages_of(outputs, "assistant")


def _read_tool(span: Span, facts: SpanFacts) -> None:
    if facts.call is None:
        args = message_shapes.decoded(span.attributes.get("input.value"))
        facts.call = Call(span.text("tool_call.id", "tool.id"), span.text("tool.name") or span.name, args)
    if facts.output is None:
        output = message_shapes.decoded(span.attributes.get("output.value"))
        answer = message_shapes.tool_message_of(output)
        if answer is not None:
            facts.call = facts.call._replace(id=facts.call.id or answer.id)
            output = answer.output
        facts.output = output


def _read_root(span: Span, facts: SpanFacts) -> None:
    """Read what the outermost span was asked and answered, where that is plain words."""
    for side, messages in (("input", facts.inputs), ("output", facts.outputs)):
        text = span.text(f"{side}.value")
        is_plain = span.text(f"{side}.mime_type") in ("", "text/plain") and text[:1] not in ("{", "[")
        if text and is_plain and not messages:
            messages.append(Message("user" if side == "input" else "assistant", text))
