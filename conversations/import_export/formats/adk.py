"""Sessions of Google's ADK: a session as JSON, an eval set, or the SQLite database of a session service.

| in the file | here |
|---|---|
| a session's `id` with its app and user (a case's `eval_id` with its eval set's) | the conversation |
| `events[].author` | `user` is the person, any other an agent |
| `content.parts[].text` | a message; one that is a thought is its reasoning |
| `function_call`, `function_response` | tool_step start and end, joined by `id`, without one by `name` |
| a response with `error`, or `status` error | a call that failed |
| `usage_metadata` | tokens; `error_code`, `error_message`: an answer that failed |
| `actions.transfer_to_agent` | a handoff |
| `actions` pickled by old services, state, artifacts, `partial` events | left out; nothing is unpickled |
| of an eval set `conversation[]` | what was asked, the tools used (without their results) and the final response |

Names are read with underlines and in camel case. Tables: `events` with `event_data` (JSON), or with `author`,
`content` and `usage_metadata` in columns of their own (ADK before 1.22).
"""

from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.database import Tables, open_database
from conversations.import_export.fields import (
    ConversationNames,
    Fields,
    count_field,
    field,
    object_of,
    objects_field,
    text_field,
)
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.message_recording import RecordedMessage, recording
from conversations.import_export.recording import Recording, decoded
from conversations.telemetry.span_facts import Call, Message, Result, Usage

NAME = "ADK sessions"
READS = ("document", "lines", "database")
_OWN = ("app_name", "appName", "past_events", "pending_events", "lastUpdateTime", "last_update_time")
_COLUMNS = ("author", "content", "usage_metadata", "error_code", "error_message", "timestamp", "id", "partial")
_KEY = ("app_name", "user_id", "session_id")
PERSON = "user"


def fits(sample: object) -> bool:
    """Return whether a document, a line or a database is of this format."""
    if not isinstance(sample, dict):
        return False
    if isinstance(events := sample.get("events"), tuple):  # columns
        return {*_KEY, "timestamp"} <= set(events) and ("event_data" in events or "author" in events)
    if isinstance(sample.get("eval_cases"), list):
        return True
    return isinstance(events, list) and any(name in sample for name in _OWN)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    names = ConversationNames()
    for location, session in _sessions(source, report):
        if isinstance(session.get("eval_cases"), list):
            for number, case in enumerate(objects_field(session, "eval_cases")):
                eval_id = text_field(case, "eval_id")
                eval_set = text_field(session, "eval_set_id") or source.stem
                name = names.of(eval_id, eval_set) if eval_id else f"{source.stem}-{number + 1}"
                yield recording(name, _of_case(case, f"{location}eval_cases[{number}]."), report)
        else:
            owner = (text_field(session, "app_name"), text_field(session, "user_id"))
            name = names.of(text_field(session, "id") or source.stem, *owner)
            yield recording(name, _of_events(session, location, report), report)


def _sessions(source: RecordingFile, report: ImportReport) -> Iterator[tuple[str, Fields]]:
    if source.begins_with_database():
        yield from _of_database(source, report)
    elif source.is_document():
        document = source.document()
        if isinstance(document, dict):
            yield "", {name: decoded(raw) for name, raw in document.items()}
    else:
        yield from ((f"{location}, ", value) for location, value in report.objects(source))


def _of_database(source: RecordingFile, report: ImportReport) -> Iterator[tuple[str, Fields]]:
    """Yield the sessions of a database, each with its events."""
    with open_database(source) as database:
        columns = _columns(database.tables())
        session: Fields = {}
        for number, row in enumerate(database.rows("events", columns, (*_KEY, "timestamp", "rowid")), 1):
            key = [row[name] for name in _KEY]
            if key != [session.get(name) for name in ("app_name", "user_id", "id")]:
                if session:
                    yield "", session
                session = {"app_name": key[0], "user_id": key[1], "id": key[2], "events": []}
            with report.reporting(f"events, row {number}"):
                session["events"].append(_event_of(row, f"events, row {number}"))
        if session:
            yield "", session


def _columns(tables: Tables) -> tuple[str, ...]:
    there = tables["events"]
    return (*_KEY, "event_data") if "event_data" in there else (*_KEY, *(name for name in _COLUMNS if name in there))


def _event_of(row: Fields, location: str) -> Fields:
    if "event_data" in row:
        return {**object_of(_json(row["event_data"]), "an event"), "location": location}
    return {**{name: _json(value) for name, value in row.items()}, "location": location}


def _json(value: Any) -> Any:
    if isinstance(value, bytes) or (isinstance(value, str) and value[:1] in ("{", "[")):
        return decoded(value if isinstance(value, bytes) else value.encode("utf-8", "replace"))
    return value


def _of_events(session: Fields, prefix: str, report: ImportReport) -> Iterator[RecordedMessage]:
    events = session.get("events")
    for number, event in enumerate(events if isinstance(events, list) else []):
        location = f"{prefix}events[{number}]"
        with report.reporting(location):
            fields = object_of(event, "an event")
            if fields.get("partial") not in (True, 1):
                yield _message(fields, str(fields.get("location") or location))


def _message(event: Fields, location: str) -> RecordedMessage:
    author = text_field(event, "author")
    if not author:
        raise Invalid("must be an event with an author")
    content = event.get("content")
    parts = objects_field(content, "parts") if isinstance(content, dict) else []
    is_person = author == PERSON
    actions = event.get("actions")
    handoff = text_field(actions, "transfer_to_agent") if isinstance(actions, dict) else ""
    return RecordedMessage(
        _spoken(parts, is_person=is_person),
        author,
        event.get("timestamp"),
        location,
        usage=_usage(field(event, "usage_metadata")),
        model=text_field(event, "model_version"),
        error=text_field(event, "error_message") or text_field(event, "error_code"),
        handoff="" if is_person else handoff,
        failed=frozenset(_id_of(r) for r in _inner(parts, "function_response") if _is_failed(r.get("response"))),
    )


def _spoken(parts: list[Fields], *, is_person: bool) -> Message:
    calls = tuple(Call(_id_of(c), text_field(c, "name"), c.get("args")) for c in _inner(parts, "function_call"))
    results = tuple(Result(_id_of(r), r.get("response")) for r in _inner(parts, "function_response"))
    texts = [text_field(part, "text") or _kind_of(part) for part in parts if part.get("thought") is not True]
    thoughts = "\n".join(text_field(part, "text") for part in parts if part.get("thought") is True)
    return Message("user" if is_person else "assistant", "\n".join(filter(None, texts)), calls, results, thoughts)


def _inner(parts: list[Fields], name: str) -> list[Fields]:
    inner = (field(part, name) for part in parts)
    return [part for part in inner if isinstance(part, dict) and text_field(part, "name")]


def _kind_of(part: Fields) -> str:
    """Return the kind of a part that is neither text nor a call."""
    kinds = ("inline_data", "file_data", "executable_code", "code_execution_result")
    return next((f"[{kind}]" for kind in kinds if isinstance(field(part, kind), dict)), "")


def _id_of(part: Fields) -> str:
    return text_field(part, "id") or text_field(part, "name")


def _is_failed(response: object) -> bool:
    return isinstance(response, dict) and bool(response.get("error") or response.get("status") == "error")


def _usage(spent: object) -> Usage:
    fields: Fields = spent if isinstance(spent, dict) else {}
    thought = count_field(fields, "thoughts_token_count")
    return Usage(
        count_field(fields, "prompt_token_count"),
        count_field(fields, "candidates_token_count") + thought,
        count_field(fields, "cached_content_token_count"),
    )


def _of_case(case: Fields, prefix: str) -> Iterator[RecordedMessage]:
    """Yield the messages of an eval set's case: the texts, and the tools used in between."""
    session = field(case, "session_input")
    agent = (text_field(session, "app_name") if isinstance(session, dict) else "") or "agent"
    for number, turn in enumerate(objects_field(case, "conversation")):
        location, at = f"{prefix}conversation[{number}]", field(turn, "creation_timestamp")
        for name in ("user_content", "intermediate_data", "final_response"):
            part = field(turn, name)
            if not isinstance(part, dict):
                continue
            if name == "intermediate_data":
                calls = (
                    Call(_id_of(c), text_field(c, "name"), c.get("args")) for c in objects_field(part, "tool_uses")
                )
                message = Message("assistant", "", tuple(call for call in calls if call.name))
            else:
                message = _spoken(objects_field(part, "parts"), is_person=name == "user_content")
            yield RecordedMessage(message, agent, at, f"{location}.{name}")
