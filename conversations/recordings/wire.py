"""An import on its way: lines of JSON, from the file's reader to whoever stores them. The door reads the same lines.

| line | meaning |
|---|---|
| `{"conversation": "key"}` | the events that follow belong to this conversation, which must not exist |
| `{"payload": {…}, "id": "…"?}` | one event; `id` is its bus id, where it has one of its own |
| `{"end": 3}` | that was all: 3 conversations. Without it nothing appears |
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from conversations import envelopes
from conversations.errors import Invalid, TooLarge
from conversations.recordings.recording import Recording, addressed, decoded, encoded, with_opening
from conversations.recordings.trouble import Trouble

NOTHING = msgspec.Raw()  # msgspec reads no `Raw | None`


class Line(msgspec.Struct, omit_defaults=True):
    """One line of an import."""

    conversation: str | None = None
    payload: msgspec.Raw = NOTHING
    id: str | None = None
    end: int | None = None


class Imported(msgspec.Struct):
    """What one conversation has become."""

    conversation_id: str
    events: int
    messages: int
    tool_calls: int
    errors: int


class Taker(Protocol):
    """Whoever takes the lines: the log here, or the door of the server that holds the data directory."""

    def take(self, lines: list[bytes]) -> None:
        """Stage these lines. Raises `Conflict` when a conversation exists."""

    def finish(self) -> list[Imported]:
        """Make everything appear, at once."""

    def discard(self) -> None:
        """Forget everything."""


def lines_of(recording: Recording, key: str, trouble: Trouble) -> Iterator[bytes]:
    """Write the lines of one conversation; an event that the log would refuse is reported and left out.

    A recording without a single good event has no lines.
    """
    is_begun = False
    for step in with_opening(recording):
        body = encoded(addressed(step, key))
        try:
            envelopes.read(body)
        except (Invalid, TooLarge) as error:
            trouble.found(step.place, error.message)
            continue
        if not is_begun:
            yield encoded(Line(conversation=key))
        is_begun = True
        yield encoded(Line(payload=msgspec.Raw(body), id=step.bus_id))


def end(conversations: int) -> bytes:
    """Write the last line."""
    return encoded(Line(end=conversations))


def line_of(text: bytes) -> Line:
    """Read one line. Raises `Invalid` when it is none of the three."""
    try:
        line = msgspec.json.decode(text, type=Line)
    except RecursionError as error:
        raise Invalid(f"expected a line of an import: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        line = _line_anyhow(text, error)
    if (line.conversation is not None) + bool(len(memoryview(line.payload))) + (line.end is not None) != 1:
        raise Invalid("expected a line with one of conversation, payload, end")
    return line


def _line_anyhow(text: bytes, error: Exception) -> Line:
    """Read a line that msgspec refuses: the standard library takes lone surrogates, and so does the log."""
    value = decoded(text)
    if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
        raise Invalid(f"expected a line of an import: {error}")
    bus_id = value.get("id")
    return Line(payload=msgspec.Raw(encoded(value["payload"])), id=bus_id if isinstance(bus_id, str) else None)
