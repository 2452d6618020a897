"""LangSmith's OpenTelemetry export, of LangChain and LangGraph: the kind of a run, its thread, inputs and outputs."""

from typing import Any

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import Call, Kind, Message, SpanFacts

_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool", "retriever": "tool"}
_THREADS = ("thread_id", "session_id", "conversation_id")


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what LangSmith tells."""
    kind = span.text("langsmith.span.kind").lower()
    if not kind:
        return
    facts.has_tool_spans = True
    facts.conversation = facts.conversation or span.text(*(f"langsmith.metadata.{name}" for name in _THREADS))
    facts.agent = facts.agent or span.text("langsmith.metadata.lc_agent_name")
    facts.kind = facts.kind or _KINDS.get(kind, "" if span.parent_id else "agent")
    inputs, outputs = (
        message_shapes.decoded(span.attributes.get(f"gen_ai.{side}")) for side in ("prompt", "completion")
    )
    if facts.kind == "tool":
        _read_tool(span, facts, inputs, outputs)
    elif facts.kind:
        facts.inputs = facts.inputs or message_shapes.messages_of(inputs)
        facts.outputs = facts.outputs or _answers(outputs)
    if facts.kind == "agent":
        facts.agent = facts.agent or span.name


def _read_tool(span: Span, facts: SpanFacts, inputs: Any, outputs: Any) -> None:  # Any: any JSON
    if outputs is None:  # another convention has it
        outputs = facts.output
    output = outputs.get("output", outputs) if isinstance(outputs, dict) else outputs
    message = message_shapes.tool_message_of(output)
    call_id = span.text("gen_ai.tool.call.id") or (message.id if message else "")
    facts.call = facts.call or Call(call_id, span.text("gen_ai.tool.name") or span.name, inputs)
    facts.output = message.output if message else output


def _answers(outputs: Any) -> list[Message]:
    """Return a model's generations, or, from a whole state, what came after the person's last message."""
    if isinstance(outputs, dict) and isinstance(outputs.get("generations"), list):
        outputs = outputs["generations"]
    messages = message_shapes.messages_of(outputs, "assistant")
    last = max((n for n, message in enumerate(messages, 1) if message.role == "user"), default=0)
    return messages[last:]
