"""Read people's annotations (thumbs and notes) by the events they are about. For pages, text output and the API."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from django.db import connection

from conversations.core.json_values import text_of
from conversations.events.log import bounded_reads
from conversations.events.log.sql import marks
from conversations.events.payload import decoded
from conversations.events.projections.event_annotations import WITHDRAWN

MAX_ANNOTATIONS = 2_000  # annotations of one read, the newest
LETTERS = 2_000  # characters of a note
NOTE_BYTES = 1 << 20  # of the bodies that hold the notes of one read, the newest first
_COLUMNS = "seq,about,author,thumb,at"
_EVERY = 1 << 62


class RecordedAnnotation(NamedTuple):
    """A thumb, a note or both, by `author`, about event `about`. `seq` is the annotation's own event."""

    seq: int
    about: int
    author: str
    thumb: str  # up, down or withdrawn; empty: as it was
    at: int  # µs UTC
    text: str = ""


def of_events(conversation: int, seqs: Collection[int], upto: int = _EVERY) -> dict[int, list[RecordedAnnotation]]:
    """Return the current annotations of these events, as of event `upto`, in order: each person's last thumb, and every
    note. Events without annotations are left out."""
    if not seqs:
        return {}
    where = f"about IN ({marks(len(seqs))}) AND seq<=%s"
    return _standing(_read(conversation, where, [*seqs, upto], MAX_ANNOTATIONS))


def of_conversation(conversation: int, upto: int = _EVERY) -> dict[int, list[RecordedAnnotation]]:
    """Return the current annotations of all events, within the newest `MAX_ANNOTATIONS` annotations."""
    return _standing(_read(conversation, "seq<=%s", [upto], MAX_ANNOTATIONS))


def before(conversation: int, seq: int | None, about: int | None, limit: int) -> list[RecordedAnnotation]:
    """Return the newest annotations before event `seq`, of one event or of all, newest first, in their original
    form."""
    where, values = "seq<%s", [_EVERY if seq is None else seq]
    if about is not None:
        where, values = f"{where} AND about=%s", [*values, about]
    return _read(conversation, where, values, limit)


def thumb_of(conversation: int, about: int, author: str) -> str:
    """Return a person's current thumb on an event: up, down, or empty."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT thumb FROM conversations_annotation WHERE conversation_id=%s AND about=%s AND author=%s"
            " AND thumb<>'' ORDER BY seq DESC LIMIT 1",
            [conversation, about, author],
        )
        row = cursor.fetchone()
    return "" if row is None or row[0] == WITHDRAWN else str(row[0])


def _standing(newest_first: Iterable[RecordedAnnotation]) -> dict[int, list[RecordedAnnotation]]:
    standing: dict[int, list[RecordedAnnotation]] = {}
    thumbs: set[tuple[int, str]] = set()
    for row in newest_first:
        place = (row.about, row.author)
        shown = row._replace(thumb="") if place in thumbs or row.thumb == WITHDRAWN else row
        if row.thumb:
            thumbs.add(place)
        if shown.thumb or shown.text:
            standing.setdefault(row.about, []).append(shown)
    return {about: these[::-1] for about, these in standing.items()}


def _read(conversation: int, where: str, values: list[int], limit: int) -> list[RecordedAnnotation]:
    """Read rows, newest first, then the events of their notes."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM conversations_annotation WHERE conversation_id=%s AND {where}"
            f" ORDER BY seq DESC LIMIT {limit:d}",
            [conversation, *values],
        )
        rows = cursor.fetchall()
        if not rows:
            return []
        source = f"FROM conversations_event WHERE conversation_id=%s AND seq IN ({marks(len(rows))})"
        places = [conversation, *(row[0] for row in rows)]
        events = bounded_reads.rows(cursor, "seq,body", source, places, order="seq DESC", most=NOTE_BYTES)
    texts = {seq: _text(body) for seq, body in events}
    return [RecordedAnnotation(*row)._replace(text=texts.get(row[0], "")) for row in rows]


def _text(body: str) -> str:
    """Return the text of an annotation; empty if it was redacted."""
    fields: dict[str, Any] = decoded(body.encode("utf-8", "replace"))  # any JSON
    return (text_of(fields.get("text")) or "")[:LETTERS]
