"""Read the events after a position in many conversations at once: on PostgreSQL with a single query; on SQLite with one
query each, because a query there is a function call and a sort would hold every body."""

from collections.abc import Mapping

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events.log import bounded_reads
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.records import Stored

EVENTS = 2000  # of one read, all conversations together
MIN_EVENTS = 20  # events of each

_EACH = """FROM conversations_event WHERE conversation_id=(SELECT id FROM conversations_conversation WHERE key=%s)
AND seq>%s AND seq<=%s"""


def read_after_many(places: Mapping[str, int]) -> tuple[dict[str, list[Stored]], bool]:
    """Return the events after each position (key → seq), in order, and whether everything requested was read.

    Each conversation gets at most its share of 2,000 events; beyond 4 MiB the rest is left for another read. The range
    is closed on both sides, which gapless seqs allow, so that no conversation is read to its end.
    """
    share = max(MIN_EVENTS, EVENTS // len(places))
    with connection.cursor() as cursor:
        read_some = _one_by_one if connection.vendor == "sqlite" else _together
        rows = read_some(cursor, places, share)
    by_key: dict[str, list[Stored]] = {}
    for row in rows:
        by_key.setdefault(row[0], []).append(Stored(*row))
    return by_key, bounded_reads.size(rows) <= bounded_reads.READ_BYTES


def _together(cursor: CursorWrapper, places: Mapping[str, int], share: int) -> list[bounded_reads.Row]:
    placeholders = ",".join(["(CAST(%s AS text),CAST(%s AS bigint),CAST(%s AS bigint))"] * len(places))
    source = (
        f"FROM (VALUES {placeholders}) AS a(key,after,upto)"
        " JOIN (SELECT id,key AS name FROM conversations_conversation) c ON c.name=a.key"
        " JOIN conversations_event e ON e.conversation_id=c.id AND e.seq>a.after AND e.seq<=a.upto"
    )
    values = [value for key, after in places.items() for value in (key, after, after + share)]
    return bounded_reads.rows(cursor, f"key,{COLUMNS}", source, values, order="key,seq", most=bounded_reads.READ_BYTES)


def _one_by_one(cursor: CursorWrapper, places: Mapping[str, int], share: int) -> list[bounded_reads.Row]:
    all_rows: list[bounded_reads.Row] = []
    room = bounded_reads.READ_BYTES
    for key, after in places.items():
        values, order = [key, after, after + share], "seq"
        rows = [(key, *row) for row in bounded_reads.rows(cursor, COLUMNS, _EACH, values, order=order, most=room)]
        all_rows += rows
        room -= bounded_reads.size(rows)
        if room < 0:
            break
    return all_rows
