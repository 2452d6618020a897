"""What a request of the responses door asks the tables, by plain SQL: who is served, and where its conversation stands.

Called by `actions.responses` inside its transaction; Django's query building would cost more than all the rest.
"""

from typing import NamedTuple

from django.db import connection

from conversations.nodes import database_time
from conversations.responses import PLAIN_MODEL, PLAIN_TEAM

_SERVED = """SELECT team,is_demo_model,tools FROM conversations_agent
WHERE served_until>%s AND (name=%s OR team=%s AND name=%s)"""
_STANDS = """SELECT c.head_seq,c.state,c.owner,EXISTS (SELECT 1 FROM conversations_run r WHERE r.conversation_id=c.id
AND r.kind='agent' AND r.parent_call IS NULL AND r.status IN ('queued','running','waiting'))
FROM conversations_conversation c WHERE c.key=%s"""


class Served(NamedTuple):
    """Who may answer for a model's name now. `hosted` is the JSON of the plain model's tools, empty when none is."""

    is_agent: bool
    is_plain: bool
    is_demo: bool  # the plain one
    hosted: str


class Standing(NamedTuple):
    """Where a conversation stands, locked."""

    head: int
    must_wait: bool


def served(model: str) -> Served:
    """Answer whether an agent of this name is served, and whether plain models are."""
    with connection.cursor() as cursor:
        cursor.execute(_SERVED, [database_time(), model, PLAIN_TEAM, PLAIN_MODEL])
        rows = cursor.fetchall()
    plain = next((row for row in rows if row[0] == PLAIN_TEAM), None)
    is_agent = any(team != PLAIN_TEAM for team, _, _ in rows)
    return Served(is_agent, plain is not None, bool(plain and plain[1]), plain[2] if plain else "")


def standing(key: str) -> Standing | None:
    """Lock a conversation and answer its head, and whether a new run has to wait there; None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDS + ("" if connection.vendor == "sqlite" else " FOR UPDATE OF c"), [key])
        row = cursor.fetchone()
    return None if row is None else Standing(row[0], row[1] != "open" or bool(row[2]) or bool(row[3]))
