"""The participants of the list's rows and what a reader has read, a bounded number of rows of each conversation, by
index. Called by `conversation_list`."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from conversations.conversation import attention
from conversations.events.log.sql import any_of
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import User

MAX_NAMED = 100  # participants of a row

# PostgreSQL guesses how many participants a conversation has, and sorts them all where it guesses few: a range over two
# columns with a limit leaves it no choice. SQLite has no lateral query; there a blob is greater than every text.
_FIRST = {
    "postgresql": f"""SELECT c.id,p.name,'',0 FROM conversations_conversation c CROSS JOIN LATERAL (SELECT name
FROM conversations_participant WHERE (conversation_id,name)>=(c.id,'') AND conversation_id<=c.id
ORDER BY conversation_id,name LIMIT {MAX_NAMED + 1}) p WHERE c.id{{}}""",
    "sqlite": f"""SELECT c.id,p.name,'',0 FROM conversations_conversation c
CROSS JOIN conversations_participant p ON p.conversation_id=c.id AND p.name<=COALESCE((SELECT name
FROM conversations_participant WHERE conversation_id=c.id ORDER BY name LIMIT 1 OFFSET {MAX_NAMED}),x'')
WHERE c.id{{}}""",
}
_ASKED = """SELECT c.id,'','asked',0 FROM conversations_conversation c WHERE c.id{} AND
(SELECT 1 FROM conversations_participant WHERE conversation_id=c.id AND asked_at>0 AND asked_at>=%s LIMIT 1)=1"""
_MARKERS = """SELECT conversation_id,'','seen',messages_seen FROM conversations_readmarker
WHERE conversation_id{} AND user_id=%s"""


class RowPeople(NamedTuple):
    """By conversation: names of participants, at most `MAX_NAMED` + 1, the first; how many messages the reader has
    read. `with_questions`: conversations where somebody has not answered an agent."""

    named: dict[int, list[str]]
    with_questions: list[int]
    read_counts: dict[int, int]


def read(ids: Sequence[int], reader: User | None) -> RowPeople:
    """Read them in one query: a round trip costs more than the query."""
    people = RowPeople({}, [], {})
    if not ids:
        return people
    test, values = any_of(ids)
    parts = [_FIRST[connection.vendor].format(test), _ASKED.format(test)]
    given = [*values, *values, attention.oldest_asked()]
    if reader is not None:
        parts, given = [*parts, _MARKERS.format(test)], [*given, *values, reader.pk]
    for conversation, name, kind, number in fetch_rows(" UNION ALL ".join(parts), given):
        if kind == "seen":
            people.read_counts[conversation] = number
        elif kind == "asked":
            people.with_questions.append(conversation)
        else:
            people.named.setdefault(conversation, []).append(name)
    return people
