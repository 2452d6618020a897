"""OpenLLMetry (Traceloop): the older flattened `gen_ai.prompt.0.content`, and `traceloop.*` of workflows and tools."""

from collections.abc import Iterable

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import Call, Kind, SpanFacts

_OWN = ("traceloop.", "llm.", "gen_ai.handoff.", "gen_ai.completion.0", "gen_ai.prompt.0.role")
_KINDS: dict[str, Kind] = {"agent": "agent", "tool": "tool"}


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what the library tells."""
    kind = span.text("traceloop.span.kind")
    facts.kind = facts.kind or _KINDS.get(kind, "")
    facts.conversation = facts.conversation or span.text(
        *(f"traceloop.association.properties.{name}" for name in ("session_id", "thread_id", "conversation_id"))
    )
    if kind == "agent":
        facts.agent = facts.agent or span.text("gen_ai.agent.name", "traceloop.entity.name")
    if facts.kind == "tool" and "gen_ai.tool.name" not in span.attributes:
        _read_tool(span, facts)
    if span.text("llm.request.type") in ("chat", "completion") and not facts.kind:
        facts.kind = "model"
    giver, taker = span.text("gen_ai.handoff.from_agent"), span.text("gen_ai.handoff.to_agent")
    if giver and taker:
        facts.kind, facts.handoff = "handoff", (giver, taker)
    _read_messages(span, facts)


def is_of_library(names: Iterable[str]) -> bool:
    """Return whether attributes are the library's own."""
    return any(name.startswith(_OWN) for name in names)


def _read_messages(span: Span, facts: SpanFacts) -> None:
    if not facts.inputs and "gen_ai.prompt.0.role" in span.attributes:
        prompts = message_shapes.unflattened(span.attributes, "gen_ai.prompt")
        facts.inputs = message_shapes.messages_of(prompts)
    if not facts.outputs and "gen_ai.completion.0.role" in span.attributes:
        completions = message_shapes.unflattened(span.attributes, "gen_ai.completion")
        facts.outputs = message_shapes.messages_of(completions, "assistant")


def _read_tool(span: Span, facts: SpanFacts) -> None:
    if facts.call is None:
        inputs = message_shapes.decoded(span.attributes.get("traceloop.entity.input"))
        args = inputs.get("inputs", inputs) if isinstance(inputs, dict) else inputs
        facts.call = Call("", span.text("traceloop.entity.name") or span.name, args)
    if facts.output is None:
        facts.output = message_shapes.decoded(span.attributes.get("traceloop.entity.output"))
