"""Filter calls by words in their arguments and outputs, by the search index; and in messages around them.

Rare words are looked up: their calls are a scan of their own and the answer is complete. For frequent ones each call
along the walk is tested.
"""

from typing import Any, NamedTuple

from conversations.events import registry
from conversations.listing.sql_conditions import fetch_rows
from conversations.search.event_filter import Matching, matching

MAX_EVENTS = 1_000  # events with the words that are looked up
MAX_CALLS = 5_000
NEAR = 12  # events before and after a call whose messages count as around it
SPEECH = registry.names_with("speech")

_STEPS = "e.conversation_id=t.conversation_id AND e.seq IN (t.called_seq,t.finished_seq)"
_NEAR = (
    f"e.conversation_id=t.conversation_id AND e.seq BETWEEN t.called_seq-{NEAR} AND t.called_seq+{NEAR}"
    f" AND e.kind IN {SPEECH}"
)


class TextFilter(NamedTuple):
    """The condition on a call `t`, and the ids of all matching calls if they are few."""

    sql: str
    values: tuple[Any, ...]
    ids: list[str] | None


def find(q: str, where: str) -> TextFilter | None:
    """Search for words in calls, with `around` also in messages near them; None if `q` has no word."""
    matches = matching(q, MAX_EVENTS)
    if matches is None:
        return None
    test = f"EXISTS (SELECT 1 FROM conversations_event e WHERE {_STEPS} AND {matches.sql})"
    values = matches.values
    if where == "around":
        test = f"({test} OR EXISTS (SELECT 1 FROM conversations_event e WHERE {_NEAR} AND {matches.sql}))"
        values += matches.values
    ids = _calls(matches, where)
    return TextFilter(test, values, ids if ids is not None and len(ids) <= MAX_CALLS else None)


def _calls(matches: Matching, where: str) -> list[str] | None:
    if not matches.places:
        return None if matches.places is None else []
    with_clause = f"WITH p(conversation,seq) AS (VALUES {','.join(['(%s,%s)'] * len(matches.places))})"
    joins = ["t.called_seq=p.seq", "t.finished_seq=p.seq"]
    parts = [
        f"SELECT t.id FROM p JOIN conversations_toolcall t ON t.conversation_id=p.conversation AND {join}"
        for join in joins
    ]
    if where == "around":
        parts.append(
            "SELECT t.id FROM p JOIN conversations_event e ON e.conversation_id=p.conversation AND e.seq=p.seq"
            f" AND e.kind IN {SPEECH} JOIN conversations_toolcall t ON t.conversation_id=p.conversation"
            f" AND t.called_seq BETWEEN p.seq-{NEAR} AND p.seq+{NEAR}"
        )
    sql = f"{with_clause} {' UNION '.join(parts)} LIMIT {MAX_CALLS + 1}"
    return [id_ for (id_,) in fetch_rows(sql, [number for position in matches.places for number in position])]
