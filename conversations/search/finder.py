"""Find events, newest first, page by page with keyset cursors: no OFFSET, and a time limit on every page."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.errors import Invalid
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.records import Stored
from conversations.events.log.sql import marks
from conversations.events.types.redaction import FIELD_MARK
from conversations.listing.page import read_cursor
from conversations.search import recorded_times
from conversations.search.index_rows import Wanted
from conversations.search.index_tables import beginning_with, of_this, query_terms
from conversations.search.query import Query, Term

MAX_SPREAD = 500  # words that one prefix may stand for
MAX_BODIES = 16 << 20  # characters of the bodies of one answer, or one event more
PATIENCE = 0.25  # seconds: then it says how far it looked
END = (1 << 63) - 1


class SearchHit(NamedTuple):
    """An event that matches."""

    id: int
    title: str
    event: Stored


class SearchPage(NamedTuple):
    """Hits, newest first. `cursor`: where older ones begin, None if everything was searched. `looked_to`: if the time
    limit ended the search before the page was full, µs UTC back to which everything was searched."""

    hits: Sequence[SearchHit]
    cursor: str | None
    looked_to: int | None = None


def find(query: Query, *, before: str = "", limit: int = 25) -> SearchPage:
    """Return the newest hits that are older than the cursor `before`. Raises Invalid for a cursor that is not one of
    ours, and for a prefix that more than 500 words begin with."""
    cursor_ids = read_cursor(before, 1)
    high = cursor_ids[0] if cursor_ids else END
    if query.is_empty:
        return SearchPage((), None)
    with connection.cursor() as cursor:
        conversation = _conversation(cursor, query.conversation)
        words = spread(cursor, query)
        if conversation == 0 or not all(words.values()):
            return SearchPage((), None)
        return _walk(cursor, query, query_terms(query, conversation, words), high, limit)


def _walk(cursor: CursorWrapper, query: Query, index_query: Wanted, high: int, limit: int) -> SearchPage:
    """Search the ranges of ids that may contain the requested time, until the page is full or the time is up."""
    deadline, hits, has_looked = time.monotonic() + PATIENCE, list[SearchHit](), False
    for low, top in recorded_times.stretches(cursor, query.since, query.until, high):
        high = top
        while low < high:
            if has_looked and time.monotonic() > deadline:
                looked_to = _looked_to(cursor, query, high)
                return SearchPage(hits, str(high) if looked_to is not None else None, looked_to)
            ids, high = of_this().find(cursor, index_query, low, high, limit + 1 - len(hits), deadline)
            new_hits, is_whole = _read(cursor, ids, query)
            hits, has_looked = hits + new_hits, True
            if len(hits) > limit or not is_whole:
                return SearchPage(hits[:limit], str(hits[:limit][-1].id))
    return SearchPage(hits, None)


def _looked_to(cursor: CursorWrapper, query: Query, high: int) -> int | None:
    """Return the moment back to which everything was searched, µs UTC; None if no event is older."""
    latest = recorded_times.latest_below(cursor, high)
    return min(latest, query.until) if latest is not None and query.until is not None else latest


def _conversation(cursor: CursorWrapper, key: str) -> int | None:
    """Return the conversation's row id; 0 if there is none with this name, None if no name was given."""
    if not key:
        return None
    cursor.execute("SELECT id FROM conversations_conversation WHERE key=%s AND NOT is_staged", [key])
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def spread(cursor: CursorWrapper, query: Query) -> dict[Term, list[str]]:
    """Return the words that each prefix of a query stands for. Raises Invalid if there are more than 500."""
    return {term: _words_starting_with(cursor, term) for term in query.terms if term.is_prefix}


def _words_starting_with(cursor: CursorWrapper, term: Term) -> list[str]:
    prefix = term.words[-1]
    matches = beginning_with(cursor, prefix, MAX_SPREAD + 1)
    if len(matches) > MAX_SPREAD:
        raise Invalid(f"more than {MAX_SPREAD} words start with {prefix!r}: add a letter", field="q")
    return matches


def _read(cursor: CursorWrapper, ids: Sequence[int], query: Query) -> tuple[list[SearchHit], bool]:
    """Read the events that are visible and of the requested time, in the order of `ids`; return whether all fitted
    within `MAX_BODIES` characters."""
    if not ids:
        return [], True
    columns = ",".join(f"e.{name}" for name in COLUMNS.split(","))
    cursor.execute(
        f"SELECT e.id,c.title,c.key,{columns} FROM conversations_event e JOIN conversations_conversation c"
        f" ON c.id=e.conversation_id WHERE e.id IN ({marks(len(ids))}) AND NOT c.is_staged"
        f" AND (e.erased_by IS NULL OR e.erased_by LIKE '{FIELD_MARK}%%')"
        " AND e.at>=%s AND e.at<%s ORDER BY e.id DESC",
        [*ids, query.since or 0, END if query.until is None else query.until],
    )
    hits, size = [], 0
    for id_, title, *event in cursor:
        hits.append(SearchHit(id_, title, Stored(*event)))
        size += len(hits[-1].event.body)
        if size > MAX_BODIES:
            return hits, False
    return hits, True
