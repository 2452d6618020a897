"""Langfuse's SDKs: the kind of an observation, its input and output, and the session of its trace."""

from typing import Any

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import Call, Kind, SpanFacts, Usage

_KINDS: dict[str, Kind] = {"agent": "agent", "generation": "model", "tool": "tool", "retriever": "tool"}
HAS_TOOLS = "switchboard.trace_has_tools"  # set by an import, which knows of a whole trace whether it has any
CALL_ID = "switchboard.call_id"  # set by an import on a tool's span: the id by which an answer of its trace calls it


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what the SDKs tell."""
    facts.conversation = facts.conversation or span.text(
        "langfuse.session.id", "langfuse.trace.session_id", "session.id"
    )
    facts.has_tool_spans = facts.has_tool_spans or span.attributes.get(HAS_TOOLS) is True
    kind = span.text("langfuse.observation.type").lower()
    if kind not in _KINDS:
        return
    facts.kind = facts.kind or _KINDS[kind]
    asked_for = message_shapes.decoded(span.attributes.get("langfuse.observation.input"))
    answered = message_shapes.decoded(span.attributes.get("langfuse.observation.output"))
    if kind == "generation":
        facts.model = facts.model or span.text("langfuse.observation.model.name")
        facts.inputs = facts.inputs or message_shapes.messages_of(_spoken(asked_for))
        facts.outputs = facts.outputs or message_shapes.messages_of(answered, "assistant")
        spent = message_shapes.decoded(span.attributes.get("langfuse.observation.usage_details"))
        if isinstance(spent, dict) and facts.usage == Usage():
            facts.usage = Usage(*(n if type(n := spent.get(w)) is int else 0 for w in ("input", "output")))
    elif _KINDS[kind] == "tool":
        name = span.text("gen_ai.tool.name", "tool.name", "ai.toolCall.name") or span.name
        call_id = span.text("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
        call = facts.call or Call(call_id, name, asked_for)
        facts.call = call if call.id else call._replace(id=span.text(CALL_ID))
        facts.output = answered if facts.output is None else facts.output
    else:
        facts.agent = facts.agent or span.text("gen_ai.agent.name", "graph.node.id", "agent.name") or span.name
    if span.text("langfuse.observation.level") == "ERROR" and span.error is None:
        span.error = span.text("langfuse.observation.status_message") or "error"


def _spoken(asked_for: Any) -> Any:  # any JSON
    """Return the messages of a model's input: Gemini's contents with the instruction before them; without the offered
    tools, which the LangChain integration writes as tool messages."""
    if isinstance(asked_for, dict) and isinstance(asked_for.get("contents"), list):
        config = asked_for.get("config")
        instruction = config.get("system_instruction") if isinstance(config, dict) else None
        return [*([{"role": "system", "content": instruction}] if instruction else []), *asked_for["contents"]]
    if not isinstance(asked_for, list):
        return asked_for
    return [item for item in asked_for if not (isinstance(item, dict) and _is_offered(item))]


def _is_offered(item: dict[str, Any]) -> bool:
    content = item.get("content")
    return item.get("role") == "tool" and isinstance(content, dict) and content.get("type") == "function"
