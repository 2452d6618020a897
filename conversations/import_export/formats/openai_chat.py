"""OpenAI chat messages: a JSON list, `{"messages": […]}`, lines of either, and tau-bench results (`traj`).

| in the file | here |
|---|---|
| one list, or all lines of single messages | one conversation, named after the file |
| each item or line with `messages` or `traj` | one conversation, named after the file and its place (from 1) |
| role `user` (`name`) | message from `user` (its name) to `agent:assistant` |
| role `assistant` (`name`), content or `refusal` | message from `agent:assistant` (`agent:` and its name) to `user` |
| role `system`, `developer` | control from `system` to `agent:assistant` |
| `tool_calls[]`, the older `function_call` | tool_step start: `id`, `function.name`, `function.arguments` as sent |
| role `tool`, `function` | tool_step success, or error when it begins with `Error:`; output is the content |
| content of parts | the texts joined by line breaks, others as `[type]`; all are kept in `metadata.parts` |
| `created_at`, `timestamp` | `created_at` and the pace |
| `finish_reason`, logprobs and the like | left out |

Counters: messages = user and assistant messages, except those that only call tools; tool_calls = calls made;
errors = results that begin with `Error:` (tau-bench writes a failed call that way).
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import LOOK, RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import (
    FileTimes,
    RecordedStep,
    Recording,
    caption,
    control,
    decoded,
    message_step,
)
from conversations.import_export.tool_call_pairing import Open, OpenToolCalls

NAME = "OpenAI chat messages"
READS = ("document", "lines")
IS_GENERAL = True  # any list of messages with roles
LISTS = ("messages", "traj")


def fits(sample: object) -> bool:
    """Return whether a document, or a line, is of this format."""
    if isinstance(sample, list):
        return any(fits(item) or _is_message(item) for item in sample[:LOOK])
    return _is_message(sample) or (isinstance(sample, dict) and _list_of(sample) is not None)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    document = source.document() if source.is_document() else {}
    if isinstance(document, dict) and not document.keys() & set(LISTS):
        yield from _of_lines(source, report)
    elif isinstance(document, dict):
        lists = {name: decoded(document[name]) for name in LISTS if name in document}
        yield _recording(source.stem, lists, "", report)
    elif any(_is_message(decoded(raw)) for raw in document[:LOOK]):
        messages = ((f"[{n}]", decoded(raw)) for n, raw in enumerate(document))
        title = _title_of(decoded(raw) for raw in document[:LOOK])
        yield Recording(source.stem, title, steps_of(messages, report), is_named_after_file=True)
    else:
        for number, raw in enumerate(document):
            if is_good(decoded(raw), f"[{number}]", report):
                yield _recording(f"{source.stem}-{number + 1}", decoded(raw), f"[{number}].", report)


def _of_lines(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    first = next((value for _, value in report.objects(source, limit=LOOK, quiet=True) if fits(value)), {})
    if _is_message(first):
        yield Recording(source.stem, "", steps_of(report.objects(source), report), is_named_after_file=True)
        return
    for location, value in report.objects(source):
        if is_good(value, location, report):
            number = location.removeprefix("line ")
            yield _recording(f"{source.stem}-{number}", value, f"{location}, ", report)


def is_good(value: object, location: str, report: ImportReport) -> bool:
    """Return whether this item holds a list of messages; report it if not."""
    if isinstance(value, dict) and _list_of(value) is not None:
        return True
    report.add_problem(location, "must be an object with a list of messages")
    return False


def _recording(name: str, item: dict[str, Any], prefix: str, report: ImportReport) -> Recording:
    field = _list_of(item) or LISTS[0]
    messages = item.get(field)
    if not isinstance(messages, list):
        report.add_problem(f"{prefix}{field}", "must be a list of messages")
        messages = []
    placed = ((f"{prefix}{field}[{n}]", message) for n, message in enumerate(messages))
    return Recording(name, _title_of(messages), steps_of(placed, report), is_named_after_file=True)


def steps_of(messages: Iterable[tuple[str, Any]], report: ImportReport) -> Iterator[RecordedStep]:
    """Yield the steps of one conversation's messages; invalid ones are reported and left out."""
    chat = _Chat()
    for location, message in messages:
        with report.reporting(location):
            yield from chat.steps(location, message)


class _Chat:
    """One conversation while it is read."""

    def __init__(self) -> None:
        self._calls, self._times = OpenToolCalls(), FileTimes()

    def steps(self, location: str, message: object) -> list[RecordedStep]:
        if not _is_message(message):
            raise Invalid("must be a message with a role")
        role = message["role"]
        if role in ("tool", "function"):
            return [self._result(location, message)]
        if role in ("user", "assistant", "system", "developer"):
            return self._words(location, message) + self._started(location, message)
        raise Invalid(f"role must be user, assistant, system, developer or tool; got {str(role)[:40]!r}")

    def _words(self, location: str, message: dict[str, Any]) -> list[RecordedStep]:
        text, parts = text_of(message.get("content"))
        refusal = message.get("refusal")
        if not text and isinstance(refusal, str):
            text = refusal
        if not text.strip() and _calls_in(message):
            return []
        moment = self._times.of(message.get("created_at", message.get("timestamp")))
        sender, recipient = _ends(message)
        make = control if message["role"] in ("system", "developer") else message_step
        return [
            make(sender, recipient, text, moment=moment, location=location, parts=parts, refusal=bool(refusal) or None)
        ]

    def _started(self, location: str, message: dict[str, Any]) -> list[RecordedStep]:
        moment = self._times.of(message.get("created_at", message.get("timestamp")))
        caller = _ends(message)[0]
        calls = [(call, _function_of(call)) for call in _calls_in(message)]
        return [
            self._calls.start(
                Open(_id_of(call.get("id")), function["name"], caller, moment.offset),
                function.get("arguments", function.get("input", "")),
                moment=moment,
                location=location,
            )
            for call, function in calls
        ]

    def _result(self, location: str, message: dict[str, Any]) -> RecordedStep:
        moment = self._times.of(message.get("created_at", message.get("timestamp")))
        text, parts = text_of(message.get("content"))
        return self._calls.finish(
            _id_of(message.get("tool_call_id")), parts or text, failed=is_error(text), moment=moment, location=location
        )


def is_error(text: str) -> bool:
    """Return whether a result says that the call failed; the format has no flag for it."""
    return text.lstrip().startswith("Error:")


def text_of(content: object) -> tuple[str, list[Any] | None]:
    """Return the text of a message's content, and its parts if not all of them are text."""
    if content is None or isinstance(content, str):
        return content or "", None
    if not isinstance(content, list):
        raise Invalid(f"content must be a string, a list of parts or null; got {type(content).__name__}")
    texts = [_part(part) for part in content]
    plain = all(isinstance(part, dict) and part.get("type") == "text" for part in content)
    return "\n".join(texts), None if plain else content


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise Invalid(f"content part must be a string or an object; got {type(part).__name__}")
    text = part.get("text", part.get("refusal"))
    return text if isinstance(text, str) else f"[{str(part.get('type', 'part'))[:40]}]"


def _ends(message: dict[str, Any]) -> tuple[str, str]:
    name = message.get("name") if isinstance(message.get("name"), str) else None
    if message["role"] == "assistant":
        return f"agent:{name or 'assistant'}", "user"
    return (name or "user") if message["role"] == "user" else "system", "agent:assistant"


def _calls_in(message: dict[str, Any]) -> list[Any]:
    calls = message.get("tool_calls") or []
    older = message.get("function_call")
    if not isinstance(calls, list):
        raise Invalid("tool_calls must be a list")
    return [*calls, {"function": older}] if isinstance(older, dict) else calls


def _function_of(call: object) -> dict[str, Any]:
    function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Invalid("tool call must have function.name")
    return function


def _id_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is_message(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _list_of(item: dict[str, Any]) -> str | None:
    return next((name for name in LISTS if isinstance(item.get(name), list)), None)


def _title_of(messages: Iterable[object]) -> str:
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "user" and isinstance(message.get("content"), str):
            return caption(message["content"])
    return ""
