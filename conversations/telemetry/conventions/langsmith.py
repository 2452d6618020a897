"""LangSmith's OpenTelemetry export, of LangChain and LangGraph: the kind of a run, and its thread."""

from conversations.telemetry import message_shapes
from conversations.telemetry.reading import Call, Kind, SpanReading
from conversations.telemetry.span import Span

_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool", "retriever": "tool"}
_THREADS = ("thread_id", "session_id", "conversation_id")


def read(span: Span, reading: SpanReading) -> None:
    """Fill in what LangSmith tells."""
    kind = span.text("langsmith.span.kind").lower()
    if not kind:
        return
    reading.has_tool_spans = True
    reading.kind = reading.kind or _KINDS.get(kind, "")
    reading.conversation = reading.conversation or span.text(*(f"langsmith.metadata.{name}" for name in _THREADS))
    reading.agent = reading.agent or span.text("langsmith.metadata.lc_agent_name", "langsmith.metadata.langgraph_node")
    if _KINDS.get(kind) == "tool" and reading.call is None:
        args, output = (
            message_shapes.decoded(span.attributes.get(f"gen_ai.{side}")) for side in ("prompt", "completion")
        )
        reading.call = Call("", span.name, args)
        reading.output = output
    elif not reading.kind:
        reading.kind = "agent" if not span.parent_id else ""
