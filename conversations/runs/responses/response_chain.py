"""Read the items of a response and of those it continues, oldest first: inputs and outputs in order. Read from the
record each time, limited to the newest within a number of bytes. Used by `/v1/responses/compact` and
`unknown_calls`."""

import itertools
from typing import NamedTuple

import msgspec
from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events.log import bounded_reads
from conversations.events.log.sql import marks
from conversations.events.response_ids import Json

MAX_LINKS = 20_000  # responses of a chain that are looked at
AT_ONCE = 100  # events of one read

CHAIN = """WITH RECURSIVE chain(id,previous,conversation_id,run,in_seq,out_seq,depth) AS (
SELECT id,previous,conversation_id,run,in_seq,out_seq,0 FROM conversations_response WHERE id=%s
UNION ALL SELECT r.id,r.previous,r.conversation_id,r.run,r.in_seq,r.out_seq,c.depth+1
FROM conversations_response r JOIN chain c ON r.id=c.previous WHERE c.depth<%s)"""
_EVENTS = f"""{CHAIN} SELECT e.id FROM chain c JOIN conversations_event e
ON e.conversation_id=c.conversation_id AND e.seq IN (c.in_seq,c.out_seq) ORDER BY c.depth,e.seq DESC"""


class ChainItems(NamedTuple):
    """Items, oldest first. `is_whole`: no earlier ones are left out."""

    items: list[Json]
    is_whole: bool


def of(response: str) -> ChainItems:
    """Return the items, those of `response` last: the newest 4 MiB of their events, or at least one event."""
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS, [response, MAX_LINKS])
        ids = [row[0] for row in cursor.fetchall()]
        rows = _newest(cursor, ids)
    items: list[Json] = []
    for kind, body in reversed(rows):
        payload = msgspec.json.decode(body)
        items += payload.get("input" if kind == "response.received" else "output") or ()
    return ChainItems(items, len(rows) == len(ids))


def _newest(cursor: CursorWrapper, ids: list[int]) -> list[tuple[str, str]]:
    """Read kinds and bodies in the order of `ids`, until they exceed the limit."""
    pairs: list[tuple[str, str]] = []
    room = bounded_reads.READ_BYTES
    for at in range(0, len(ids), AT_ONCE):
        chunk = ids[at : at + AT_ONCE]
        source = f"FROM conversations_event WHERE id IN ({marks(len(chunk))})"
        rows = bounded_reads.rows(cursor, "id,kind,body", source, chunk, order="id DESC", most=room)
        read = {id_: (kind, body) for id_, kind, body in rows}
        pairs += [read[id_] for id_ in itertools.takewhile(read.__contains__, chunk)]
        room -= bounded_reads.size(rows)
        if len(rows) < len(chunk) or room < 0:
            break
    return pairs
