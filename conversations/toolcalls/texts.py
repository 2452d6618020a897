"""Words in what calls were asked and answered, by the search index; and in messages around them.

Rare words are looked up: their calls are a way of their own, and the answer is whole. Of frequent ones each call that
is walked past is tested.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from conversations.search.matching import Matching, matching

MOST = 1_000  # events with the words that are looked up
MOST_CALLS = 5_000
NEAR = 12  # events before and after a call whose messages count as around it
SAYING = ("message", "output", "user_message")

_STEPS = "e.conversation_id=t.conversation_id AND e.seq IN (t.called_seq,t.finished_seq)"
_NEAR = (
    f"e.conversation_id=t.conversation_id AND e.seq BETWEEN t.called_seq-{NEAR} AND t.called_seq+{NEAR}"
    f" AND e.kind IN {SAYING}"
)


class Words(NamedTuple):
    """The test of a call `t`, and the ids of all calls that pass it where those are few."""

    sql: str
    values: tuple[Any, ...]
    ids: list[str] | None


def find(q: str, where: str) -> Words | None:
    """Look for words in calls, with `around` in messages near them too; None where `q` has no word."""
    found = matching(q, MOST)
    if found is None:
        return None
    test = f"EXISTS (SELECT 1 FROM conversations_event e WHERE {_STEPS} AND {found.sql})"
    values = found.values
    if where == "around":
        test = f"({test} OR EXISTS (SELECT 1 FROM conversations_event e WHERE {_NEAR} AND {found.sql}))"
        values += found.values
    ids = _calls(found, where)
    return Words(test, values, ids if ids is not None and len(ids) <= MOST_CALLS else None)


def _calls(found: Matching, where: str) -> list[str] | None:
    if not found.places:
        return None if found.places is None else []
    given = f"WITH p(conversation,seq) AS (VALUES {','.join(['(%s,%s)'] * len(found.places))})"
    joins = ["t.called_seq=p.seq", "t.finished_seq=p.seq"]
    parts = [
        f"SELECT t.id FROM p JOIN conversations_toolcall t ON t.conversation_id=p.conversation AND {join}"
        for join in joins
    ]
    if where == "around":
        parts.append(
            "SELECT t.id FROM p JOIN conversations_event e ON e.conversation_id=p.conversation AND e.seq=p.seq"
            f" AND e.kind IN {SAYING} JOIN conversations_toolcall t ON t.conversation_id=p.conversation"
            f" AND t.called_seq BETWEEN p.seq-{NEAR} AND p.seq+{NEAR}"
        )
    return _ids(f"{given} {' UNION '.join(parts)} LIMIT {MOST_CALLS + 1}", found.places)


def _ids(sql: str, places: Sequence[tuple[int, int]]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [number for place in places for number in place])
        return [id_ for (id_,) in cursor.fetchall()]
