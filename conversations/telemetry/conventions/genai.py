"""OpenTelemetry's GenAI conventions, in three generations, and what Google's ADK writes beside them.

| generation | messages |
|---|---|
| up to 1.36 | events `gen_ai.user.message` … `gen_ai.choice`, of the span or as log records; `gen_ai.prompt` |
| 1.37 and later | `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions` |
| semantic-conventions-genai 0.1 | as before; `gen_ai.workflow.name` is `gen_ai.agent.name` |
"""

from collections.abc import Iterable
from typing import Any

from conversations.telemetry import message_shapes
from conversations.telemetry.span import Span, SpanEvent
from conversations.telemetry.span_facts import NOTHING_SPENT, Call, Message, Role, SpanFacts, Usage

PREFIXES = ("gen_ai.", "gcp.vertex.")
_KINDS = {
    "invoke_agent": "agent", "create_agent": "", "invoke_workflow": "agent", "execute_tool": "tool",
    "chat": "model", "text_completion": "model", "generate_content": "model", "completion": "model",
}  # fmt: skip
_EVENTS: dict[str, Role] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
_CHOICE = "gen_ai.choice"
_INPUTS = (
    "gen_ai.system_instructions",
    "gen_ai.input.messages",
    "gen_ai.prompt",
    "gcp.vertex.agent.llm_request",
)
_OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "gcp.vertex.agent.llm_response")

_PLAIN: dict[str, Role] = {"gen_ai.input.messages": "user", "gen_ai.output.messages": "assistant"}  # lists, always


def read(span: Span, facts: SpanFacts) -> None:
    """Fill in what the conventions tell."""
    if not facts.kind:
        facts.kind = _kind_of(span)  # type: ignore[assignment]  # one of the kinds
    facts.conversation = facts.conversation or span.text("gen_ai.conversation.id", "gcp.vertex.agent.session_id")
    facts.agent = facts.agent or span.text("gen_ai.agent.name", "gen_ai.workflow.name")
    facts.model = facts.model or span.text("gen_ai.response.model", "gen_ai.request.model")
    if facts.kind == "model" and facts.usage == NOTHING_SPENT:
        facts.usage = Usage(
            span.number("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            span.number("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
            span.number("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
            span.number("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
        )
    if facts.kind == "tool":
        _read_tool(span, facts)
    elif facts.kind:
        _read_messages(span, facts)


def _kind_of(span: Span) -> str:
    operation = span.text("gen_ai.operation.name")
    if operation in _KINDS:
        return _KINDS[operation]
    if span.text("gen_ai.tool.name"):
        return "tool"
    if any(event.name in _EVENTS or event.name in (_CHOICE, *_DETAILS) for event in span.events):
        return "model"
    has_model = span.text("gen_ai.request.model") and span.text("gen_ai.system", "gen_ai.provider.name")
    return "model" if has_model and operation != "embeddings" else ""


def _read_tool(span: Span, facts: SpanFacts) -> None:
    name = span.text("gen_ai.tool.name")
    if facts.call is None and name:
        args = first(span, "gen_ai.tool.call.arguments", "gcp.vertex.agent.tool_call_args", "tool_arguments", "input")
        facts.call = Call(span.text("gen_ai.tool.call.id"), name, message_shapes.decoded(args))
    if facts.output is None:
        names = ("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "tool_response", "output")
        facts.output = message_shapes.decoded(first(span, *names))


def _read_messages(span: Span, facts: SpanFacts) -> None:
    if not facts.inputs:
        facts.inputs = _all_messages(span.attributes, _INPUTS)
    if not facts.outputs:
        facts.outputs = _all_messages(span.attributes, _OUTPUTS)
    if not facts.inputs and not facts.outputs:
        for event in span.events:
            _read_event(event, facts)


def _all_messages(attributes: dict[str, Any], names: Iterable[str]) -> list[Message]:
    messages: list[Message] = []
    for name in names:
        if name in attributes:
            messages += _messages(attributes, name)
    return messages


def _messages(attributes: dict[str, Any], name: str) -> list[Message]:
    value = attributes.get(name)
    if not value:
        return []
    if isinstance(value, str) and name in _PLAIN:
        return message_shapes.messages_of(value, _PLAIN[name])
    value = message_shapes.decoded(value)
    if name == "gen_ai.system_instructions":
        message = message_shapes.message_of({"role": "system", "parts": value})
        return [message] if message else []
    if isinstance(value, dict):
        value = value.get("contents") or value.get("content") or value
    return message_shapes.messages_of(value, "assistant" if name in _OUTPUTS else "user")


def _read_event(event: SpanEvent, facts: SpanFacts) -> None:
    """Read one event of a span: a message, or both sides of an exchange."""
    content = event.attributes | (event.body if isinstance(event.body, dict) else {})
    if event.name in _DETAILS:
        facts.inputs += _all_messages(content, _INPUTS)
        facts.outputs += _all_messages(content, _OUTPUTS)
    elif event.name == _CHOICE:
        inner = message_shapes.decoded(content.get("message"))
        message = message_shapes.message_of(inner if inner else content, "assistant")
        facts.outputs += [message] if message else []
    elif event.name in _EVENTS:
        calls = message_shapes.decoded(content.get("tool_calls"))
        role = _EVENTS[event.name]
        message = message_shapes.message_of({**content, "role": role, "tool_calls": calls, "type": ""}, role)
        facts.inputs += [message] if message else []


def first(span: Span, *names: str) -> Any:  # any JSON
    """Return the first of these attributes that is there."""
    for name in names:
        if (value := span.attributes.get(name)) is not None:
            return value
    return None
