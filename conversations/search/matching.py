"""Which events hold some words, for lists of something else than events: as places, or as a test in SQL.

Called by the list of tool calls. What is not indexed yet is not found, as on the search page.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.errors import Invalid
from conversations.log.rows import marks
from conversations.search import postgresql, sqlite
from conversations.search.hits import END, MOST_SPREAD, PATIENCE
from conversations.search.query import Query, Term
from conversations.search.query import read as read_query
from conversations.search.tables import beginning_with, of_this, wanted


class Matching(NamedTuple):
    """Events that hold the words. `places` are (conversation's row, seq) of all of them, None where there are more than
    was asked for; `sql` is a condition on an event `e`, with its `values`."""

    places: list[tuple[int, int]] | None
    sql: str
    values: tuple[Any, ...]


NOTHING = Matching([], "1=0", ())


def matching(q: str, most: int) -> Matching | None:
    """Find events by words, "phrases" and prefix*; None where `q` has no word. Raises Invalid as `search.find` does."""
    query = read_query(q)
    if not query.terms:
        return None
    deadline = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        spread = {term: _spread(cursor, term) for term in query.terms if term.is_prefix}
        if not all(spread.values()):
            return NOTHING
        asked = wanted(query, None, spread)
        ids, looked_to = of_this().find(cursor, asked, 1, END, most + 1, deadline)
        places = _places(cursor, ids) if looked_to <= 1 and len(ids) <= most else None
    return Matching(places, *_condition(query, spread))


def _condition(query: Query, spread: Mapping[Term, Sequence[str]]) -> tuple[str, tuple[Any, ...]]:
    """Answer the test of one event: by its id in the index, whose other rows are not touched."""
    asked = wanted(query, None, spread)
    if connection.vendor == "sqlite":
        test = "SELECT 1 FROM conversations_search s WHERE s.rowid=e.id AND s.conversations_search MATCH %s"
        return f"EXISTS ({test})", (sqlite._asked(asked),)
    test = "SELECT 1 FROM conversations_search s WHERE s.id=e.id AND s.words @@ %s::tsquery"
    return f"EXISTS ({test})", (postgresql._asked(asked),)


def _places(cursor: CursorWrapper, ids: Sequence[int]) -> list[tuple[int, int]]:
    if not ids:
        return []
    cursor.execute(f"SELECT conversation_id,seq FROM conversations_event WHERE id IN ({marks(len(ids))})", list(ids))
    return [(conversation, seq) for conversation, seq in cursor.fetchall()]


def _spread(cursor: CursorWrapper, term: Term) -> list[str]:
    prefix = term.words[-1]
    found = beginning_with(cursor, prefix, MOST_SPREAD + 1)
    if len(found) > MOST_SPREAD:
        raise Invalid(f"more than {MOST_SPREAD} words begin with {prefix!r}: add a letter", field="q")
    return found
