"""The queries of the `/v1/responses` endpoint in plain SQL: which models are available, and the state of a
conversation.

Called by `runs.responses.create` inside its transaction; Django's query building would cost more than everything else.
"""

from typing import NamedTuple

from django.db import connection

from conversations.core.database_clock import database_now
from conversations.events.response_ids import PLAIN_MODEL, PLAIN_TEAM

AWAY_FOR = 60_000_000  # µs a worker that left may take to be back
_SERVED = """SELECT team,is_demo_model,tools,served_until>%s FROM conversations_agent
WHERE served_until>%s AND (name=%s OR team=%s AND name=%s)"""
_TEAMS = """SELECT DISTINCT team FROM conversations_agent WHERE served_until>%s"""
_MODELS = """SELECT team,name,is_entry,is_demo_model,model FROM conversations_agent WHERE served_until>%s"""
_STANDS = """SELECT c.head_seq,c.state,c.owner,EXISTS (SELECT 1 FROM conversations_run r WHERE r.conversation_id=c.id
AND r.kind='agent' AND r.parent_call IS NULL AND r.status IN ('queued','running','waiting'))
FROM conversations_conversation c WHERE c.key=%s"""
_LOCK = "SELECT 1 FROM conversations_conversation WHERE key=%s FOR UPDATE"


class ModelAvailability(NamedTuple):
    """What is available under a model's name now. `hosted` is the JSON of the plain model's tools, empty if there is
    none."""

    is_agent: bool
    is_plain: bool
    is_demo: bool  # the plain one
    hosted: str
    is_away: bool  # nobody answers now, but a worker is starting, or was here a moment ago


class Model(NamedTuple):
    """What `model` of a request may name: an agent, or the model that answers plain requests."""

    name: str
    team: str
    is_listed: bool
    """an agent of entry, or a model: others are handed on to, and may be named all the same"""


class ConversationState(NamedTuple):
    """The state of a conversation, which is locked."""

    head: int
    must_wait: bool


def model_availability(model: str) -> ModelAvailability:
    """Return whether an agent of this name is available, and whether plain models are."""
    now = database_now()
    with connection.cursor() as cursor:
        cursor.execute(_SERVED, [now, now - AWAY_FOR, model, PLAIN_TEAM, PLAIN_MODEL])
        rows = cursor.fetchall()
    plain = next((row for row in rows if row[0] == PLAIN_TEAM and row[3]), None)  # every worker serves it
    agents = [is_live for team, _, _, is_live in rows if team != PLAIN_TEAM]
    is_away = plain is None or (bool(agents) and not any(agents))
    return ModelAvailability(
        any(agents), plain is not None, bool(plain and plain[1]), plain[2] if plain else "", is_away
    )


def teams_served() -> set[str]:
    """Return the teams that are served now, or were a moment ago."""
    with connection.cursor() as cursor:
        cursor.execute(_TEAMS, [database_now() - AWAY_FOR])
        return {team for (team,) in cursor.fetchall()}


def available_models(demo: str) -> list[Model]:
    """Return what is available now, by name; `demo` is the name of the built-in model."""
    with connection.cursor() as cursor:
        cursor.execute(_MODELS, [database_now()])
        rows = cursor.fetchall()
    available: set[Model] = set()
    for team, name, is_entry, is_demo, label in rows:
        if team == PLAIN_TEAM:
            available.add(Model(demo if is_demo else label, team, is_listed=True))
        else:
            available.add(Model(name, team, is_listed=bool(is_entry)))
    return sorted(available)


def conversation_state(key: str) -> ConversationState | None:
    """Lock a conversation and return its head, and whether a new run has to wait there; None if it does not exist.

    PostgreSQL locks in a separate statement: a statement that waits for the row would see the runs as they were before.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_LOCK, [key])
        cursor.execute(_STANDS, [key])
        row = cursor.fetchone()
    return None if row is None else ConversationState(row[0], row[1] != "open" or bool(row[2]) or bool(row[3]))
