"""AutoGen's messages (0.4 and later): a result of a run, the state of a team or an agent, or messages on lines.

| in the file | here |
|---|---|
| a result's `messages[]`, a team's `message_thread[]`, lines, a list | one conversation, named after the file |
| a state without a thread: `llm_context.messages[]` | a conversation for each agent |
| `source` | `user` is the person, any other an agent |
| TextMessage, StopMessage, ToolCallSummaryMessage, UserMessage, AssistantMessage | a message |
| HandoffMessage | a message and a handoff to `target` |
| ToolCallRequestEvent, ToolCallExecutionEvent, `is_error` | tool_step start and end |
| `models_usage` | tokens |
| ThoughtEvent, SelectSpeakerEvent and other events | control; which: `metadata.about` |
| ModelClientStreamingChunkEvent, UserInputRequestedEvent | left out: the message that follows has it all |
"""

from collections.abc import Iterable, Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.fields import (
    ConversationNames,
    Fields,
    count_field,
    object_of,
    objects_field,
    text_field,
)
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.message_recording import RecordedMessage, recording
from conversations.import_export.recording import Recording, decoded
from conversations.telemetry.span_facts import Call, Message, Result, Role, Usage

NAME = "AutoGen messages"
READS = ("document", "lines")
PERSON = "user"
_AGENT = "assistant"  # of what names nobody
_PASSED_OVER = ("ModelClientStreamingChunkEvent", "UserInputRequestedEvent")
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")

Placed = tuple[str, object]  # where in the file, and what is there


def fits(sample: object) -> bool:
    """Return whether a document or a line is of this format."""
    if isinstance(sample, list):
        return any(_is_message(item) for item in sample)
    if not isinstance(sample, dict):
        return False
    if "agent_states" in sample or ("llm_context" in sample and str(sample.get("type")).endswith("State")):
        return True
    messages = sample.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    return _is_message(sample) or _is_message(first if isinstance(first, dict | None) else decoded(first))


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    names = ConversationNames()
    for name, messages in _threads(source, report):
        yield recording(names.of(f"{source.stem}{name}"), _read_all(messages, report), report, is_named_after_file=True)


def _threads(source: RecordingFile, report: ImportReport) -> Iterator[tuple[str, Iterable[Placed]]]:
    """Yield the threads of a file, each with a suffix for its name."""
    if not source.is_document():
        yield "", report.objects(source)
        return
    document = source.document()
    if isinstance(document, list):
        yield "", [(f"[{number}]", decoded(raw)) for number, raw in enumerate(document)]
        return
    fields = {name: decoded(raw) for name, raw in document.items()}
    if _is_message(fields):
        yield "", [("the document", fields)]
    elif "messages" in fields:
        yield "", _placed(fields["messages"], "messages")
    else:
        yield from _of_state(fields)


def _of_state(state: Fields) -> Iterator[tuple[str, list[Placed]]]:
    """Yield the thread of a team, else the messages of each agent."""
    agents = state.get("agent_states")
    states: Fields = agents if isinstance(agents, dict) else {"": state}
    threads = [
        _placed(inner["message_thread"], f"agent_states.{name}.message_thread")
        for name, inner in states.items()
        if isinstance(inner, dict) and inner.get("message_thread")
    ]
    if threads:
        yield from (("" if number == 0 else f"-{number + 1}", thread) for number, thread in enumerate(threads))
        return
    for name, inner in states.items():
        state = inner.get("agent_state", inner) if isinstance(inner, dict) else {}
        context = state.get("llm_context") if isinstance(state, dict) else None
        messages = context.get("messages") if isinstance(context, dict) else None
        if messages:
            yield f"-{name}" if name else "", _placed(messages, f"{name}.llm_context.messages".lstrip("."))


def _placed(items: object, field: str) -> list[Placed]:
    if not isinstance(items, list):
        raise Invalid(f"the field {field} must be a list of messages; got {type(items).__name__}")
    return [(f"{field}[{number}]", item) for number, item in enumerate(items)]


def _read_all(messages: Iterable[Placed], report: ImportReport) -> Iterator[RecordedMessage]:
    agent = _AGENT
    for location, value in messages:
        with report.reporting(location):
            fields = object_of(value, "a message")
            if not isinstance(fields.get("type"), str) or "content" not in fields:
                raise Invalid("must be a message with type and content")
            if fields["type"] in _PASSED_OVER:
                continue
            source = text_field(fields, "source")
            agent = source if source and source != PERSON else agent
            yield _message(fields, source or agent, location)


def _message(fields: Fields, source: str, location: str) -> RecordedMessage:
    kind, content, items = fields["type"], fields["content"], objects_field(fields, "content")
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    text = ""
    if kind in _RESULTS:
        results = tuple(Result(text_field(item, "call_id"), item.get("content")) for item in items)
    elif _is_calls(content):
        calls = tuple(Call(text_field(item, "id"), text_field(item, "name"), item.get("arguments")) for item in items)
        text = text_field(fields, "thought")
    else:
        text = _text_of(content)
    role: Role = "user" if source == PERSON else "system" if kind == "SystemMessage" else "assistant"
    is_event = kind.endswith("Event") and not calls and not results
    return RecordedMessage(
        Message(role, text, calls, results),
        source,
        fields.get("created_at"),
        location,
        usage=_usage(fields.get("models_usage")),
        handoff=text_field(fields, "target") if kind == "HandoffMessage" else "",
        failed=frozenset(text_field(item, "call_id") for item in items if item.get("is_error") is True),
        about=kind if is_event else "",
    )


def _is_message(value: object) -> bool:
    """Return whether an object is one of AutoGen's messages."""
    kind = value.get("type") if isinstance(value, dict) else None
    is_named = isinstance(kind, str) and kind.endswith(("Message", "Event"))
    return is_named and isinstance(value, dict) and "content" in value and isinstance(value.get("source"), str)


def _is_calls(content: object) -> bool:
    return isinstance(content, list) and any(isinstance(item, dict) and "arguments" in item for item in content)


def _text_of(content: Any) -> str:
    """Return the text of a message; a picture in it by its kind."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else "[image]" for part in content)
    if isinstance(content, dict):
        return text_field(content, "content") or text_field(content, "result")
    return ""


def _usage(spent: object) -> Usage:
    fields: Fields = spent if isinstance(spent, dict) else {}
    return Usage(count_field(fields, "prompt_tokens"), count_field(fields, "completion_tokens"))
