"""Which events contain given words, for lists of other things than events: as places, or as an SQL condition.

Called by the list of tool calls. Events that are not indexed yet do not match, as on the search page.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events.log.sql import marks
from conversations.search.finder import END, PATIENCE, spread
from conversations.search.index_tables import of_this, query_terms
from conversations.search.query import read as read_query


class Matching(NamedTuple):
    """Events that contain the words. `places`: (conversation's row id, seq) of each, None if there are more than asked
    for; `sql`: a condition on an event `e`, with its `values`."""

    places: list[tuple[int, int]] | None
    sql: str
    values: tuple[Any, ...]


NOTHING = Matching([], "1=0", ())


def matching(q: str, most: int) -> Matching | None:
    """Find events by words, "phrases" and prefix*; None if `q` has no word. `most`: how many places to return at most.
    Raises Invalid as `search.find` does."""
    query = read_query(q)
    if not query.terms:
        return None
    deadline = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        words = spread(cursor, query)
        if not all(words.values()):
            return NOTHING
        index_query = query_terms(query, None, words)
        ids, looked_to = of_this().find(cursor, index_query, 1, END, most + 1, deadline)
        places = _places(cursor, ids) if looked_to <= 1 and len(ids) <= most else None
    sql, value = of_this().condition_of(index_query)
    return Matching(places, sql, (value,))


def _places(cursor: CursorWrapper, ids: Sequence[int]) -> list[tuple[int, int]]:
    if not ids:
        return []
    cursor.execute(f"SELECT conversation_id,seq FROM conversations_event WHERE id IN ({marks(len(ids))})", list(ids))
    return [(conversation, seq) for conversation, seq in cursor.fetchall()]
