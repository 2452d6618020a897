"""Logfire and pydantic-ai: pending spans, events in one attribute, names of their own for agents and tools."""

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span, SpanEvent
from conversations.telemetry.span_facts import SpanFacts

PENDING = "pending_span"


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what pydantic-ai tells beside the GenAI conventions."""
    attributes = span.attributes
    if "agent_name" not in attributes and span.source.scope != "pydantic-ai":
        return
    facts.has_tool_spans = True
    facts.agent = facts.agent or span.text("gen_ai.agent.name", "agent_name")
    if not facts.kind and span.text("agent_name") and not span.text("gen_ai.operation.name", "gen_ai.tool.name"):
        facts.kind = "agent"
    facts.model = facts.model or span.text("gen_ai.response.model", "gen_ai.request.model", "model_name")
    if facts.kind != "tool" and (history := attributes.get("pydantic_ai.all_messages")):
        messages = message_shapes.messages_of(message_shapes.decoded(history))
        last = max((n for n, message in enumerate(messages, 1) if message.role == "user"), default=0)
        facts.inputs, facts.outputs = facts.inputs or messages[:last], facts.outputs or messages[last:]
    written = attributes.get("events") or attributes.get("all_messages_events")
    events = message_shapes.decoded(written) if written else None
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict):
            name = str(event.get("event.name") or "")
            span.events.append(SpanEvent(name, span.start, {}, event))


def settle(span: Span) -> None:
    """Give a pending span the ids of the span that it announces."""
    if span.attributes.get("logfire.span_type") == PENDING:
        span.is_pending = True
        span.span_id = span.parent_id or span.span_id
        span.parent_id = span.text("logfire.pending_parent_id").strip("0") and span.text("logfire.pending_parent_id")
