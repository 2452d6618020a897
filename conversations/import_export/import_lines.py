"""An import on its way: lines of JSON, from the file's reader to what stores them. The import endpoint reads them too.

| line | meaning |
|---|---|
| `{"conversation": "key"}` | the events that follow belong to this conversation, which must not exist |
| `{"conversation": "key", "update": true}` | the same; one that an import made may exist, and gets what it has not |
| `{"conversation": "key", "update": true, "whole": true}` | the same; refused if it lacks events of an earlier import |
| `{"payload": {…}, "id": "…"?}` | one event; `id` is its bus id, where it has one of its own |
| `{"end": 3}` | that was all: 3 conversations. Without it nothing appears |
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from conversations.core.errors import Invalid, TooLarge
from conversations.core.json_values import Converter, text_of
from conversations.events.payload import parse
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import DerivedIds, Recording, addressed, decoded, encoded, with_opening

NOTHING = msgspec.Raw()  # msgspec reads no `Raw | None`


class ImportLine(msgspec.Struct, omit_defaults=True):
    """One line of an import."""

    conversation: str | None = None
    update: bool = False
    whole: bool = False
    payload: msgspec.Raw = NOTHING
    id: str | None = None
    end: int | None = None


class ImportedConversation(msgspec.Struct):
    """What one conversation has become, in numbers."""

    conversation_id: str
    events: int
    messages: int
    tool_calls: int
    errors: int


_line = msgspec.json.Decoder(ImportLine)
imported: Converter[ImportedConversation] = Converter(ImportedConversation)


class LineReceiver(Protocol):
    """What takes the lines: the log here, or the server that holds the data directory."""

    def receive(self, lines: list[bytes]) -> None:
        """Stage these lines. Raises Conflict if a conversation exists."""

    def finish(self) -> list[ImportedConversation]:
        """Make everything visible, at once."""

    def discard(self) -> None:
        """Drop everything."""


def lines_of(recording: Recording, key: str, report: ImportReport, *, is_update: bool = False) -> Iterator[bytes]:
    """Yield the lines of one conversation; an event that the log would refuse is reported and left out.

    A recording without a valid event has no lines.
    """
    is_begun, ids = False, DerivedIds()
    for step in with_opening(recording):
        payload, bus_id = addressed(step, key), step.bus_id
        if not step.has_own_id:
            payload["id"] = ids.of(payload)
        elif not bus_id and not payload.get("id"):
            bus_id = ids.of(payload)
        body = encoded(payload)
        try:
            parse(body)
        except (Invalid, TooLarge) as error:
            report.add_problem(step.place, error.message)
            continue
        if not is_begun:
            is_whole = is_update and recording.is_named_after_file
            yield encoded(ImportLine(conversation=key, update=is_update, whole=is_whole))
        is_begun = True
        yield encoded(ImportLine(payload=msgspec.Raw(body), id=bus_id))


def end(conversations: int) -> bytes:
    """Return the last line."""
    return encoded(ImportLine(end=conversations))


def line_of(text: bytes) -> ImportLine:
    """Parse one line. Raises Invalid if it is not a line of an import."""
    try:
        line = _line.decode(text)
    except RecursionError as error:
        raise Invalid(f"must be a line of an import: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        line = _line_anyhow(text, error)
    if (line.conversation is not None) + bool(len(memoryview(line.payload))) + (line.end is not None) != 1:
        raise Invalid("must be a line with one of conversation, payload, end")
    return line


def _line_anyhow(text: bytes, error: Exception) -> ImportLine:
    """Parse a line that msgspec refuses: the standard library accepts lone surrogates, and so does the log."""
    value = decoded(text)
    if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
        raise Invalid(f"must be a line of an import: {error}")
    bus_id = value.get("id")
    return ImportLine(payload=msgspec.Raw(encoded(value["payload"])), id=text_of(bus_id))
