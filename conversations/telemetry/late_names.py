"""Move a trace's events once a later span names its conversation, from the trace's own id to that conversation.

The events are stored again in the named conversation, under their own ids, so that each is there once. The old
conversation keeps them, ends with `conversation.moved`, and becomes invisible: its address redirects. Called by the
telemetry endpoint, in its thread.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from django.db import connection

from conversations.core import principals
from conversations.core.ids import new_id, text_digest
from conversations.core.principals import Principal
from conversations.events import log, payload
from conversations.events.log.records import NewEvent, Stored
from conversations.events.log.sql import marks
from conversations.models import Conversation, Event, Meta

MOVED, WHY = "conversation.moved", "a later span named the conversation"
BLOCK = 500  # ids of one query
PAGE = 500  # events of one transaction
_MOVING = "moving:"  # and a trace's row: the name of a row of `meta` that has the row of where its first pages are
_PLACES = "SELECT key,is_staged FROM conversations_conversation WHERE key IN"


class TracePlace(NamedTuple):
    """Where a sender's events of a trace are: under `own_key` (`is_under_own`) or, once it was moved or named, in
    `conversation`."""

    own_key: str
    conversation: str
    is_under_own: bool


def places_of(trace_ids: Sequence[str], sender: str) -> dict[str, TracePlace]:
    """Return where a sender's events of those traces are that are under their own ids, or were. What another sender
    moved is hidden: there, the trace's key has the sender in it."""
    hidden = _hidden_by_key(trace_ids)
    own = {
        key: key if not is_hidden or _is_of(key, sender) else apart(key, sender) for key, is_hidden in hidden.items()
    }
    hidden |= _hidden_by_key([key for trace_id, key in own.items() if key != trace_id])
    return {
        trace_id: TracePlace(key, moved_to(key) if hidden.get(key) else "", hidden.get(key) is False)
        for trace_id, key in own.items()
    }


def apart(trace_id: str, sender: str) -> str:
    """Return the key of a sender's events of a trace whose id is taken by another sender's."""
    return f"{trace_id}-{text_digest(sender)[:8]}"


def _hidden_by_key(keys: Sequence[str]) -> dict[str, bool]:
    """Return for each conversation that exists whether it is hidden."""
    hidden: dict[str, bool] = {}
    for at in range(0, len(keys), BLOCK):
        block = keys[at : at + BLOCK]
        with connection.cursor() as cursor:
            cursor.execute(f"{_PLACES} ({marks(len(block))})", block)
            hidden |= {key: bool(is_hidden) for key, is_hidden in cursor.fetchall()}
    return hidden


def moved_to(key: str) -> str:
    """Return the conversation to which this one was moved; empty if it was not."""
    events = Event.objects.filter(conversation__key=key, conversation__is_staged=True, kind=MOVED)
    body = events.filter(principal=str(principals.SYSTEM)).order_by("-seq").values_list("body", flat=True).first()
    return str(json.loads(body)["to"]) if body else ""


def _is_of(key: str, sender: str) -> bool:
    """Return whether the events of a trace that was moved are this sender's: all are of one (see `move`)."""
    events = Event.objects.filter(conversation__key=key).order_by("seq")
    return events.values_list("principal", flat=True).first() == sender


def half_moved() -> list[tuple[int, int]]:
    """Return the rows of each trace of which not all pages are moved, and of the conversation that has the others."""
    rows = Meta.objects.filter(name__startswith=_MOVING).values_list("name", "value")
    return [(int(name.removeprefix(_MOVING)), int(to)) for name, to in rows]


def move(trace_id: str, conversation: str, by: Principal) -> bool:
    """Move what is under a trace's id, page by page, each under the locks of both conversations: what is redacted there
    meanwhile is not stored again. Returns False if it stays, because others than this principal wrote there or control
    it."""
    row = Conversation.objects.visible().filter(key=trace_id).first()
    if row is None or row.is_held or Event.objects.filter(conversation=row).exclude(principal=str(by)).exists():
        return False
    seq = 0
    while True:
        with log.write_transaction():
            _lock(trace_id, conversation)
            if not Conversation.objects.visible().filter(pk=row.pk).exists():
                return True  # another request was quicker
            page = log.read_after(trace_id, seq, PAGE)
            if any(event.principal != str(by) for event in page):
                return False
            log.append([_told_in(conversation, event, by) for event in page])
            seq = page[-1].seq if page else seq
            if not log.read_after(trace_id, seq, 1):
                _hide(row, conversation)
                return True
            to = Conversation.objects.values_list("pk", flat=True).get(key=conversation)
            Meta.objects.update_or_create(name=f"{_MOVING}{row.pk}", defaults={"value": str(to)})


def _hide(row: Conversation, conversation: str) -> None:
    moved: dict[str, object] = {"event": MOVED, "id": new_id(), "to": conversation, "reason": WHY}
    log.append([log.from_internal(row.key, moved, principals.SYSTEM)])
    Conversation.objects.filter(pk=row.pk).update(is_staged=True)
    Meta.objects.filter(name=f"{_MOVING}{row.pk}").delete()


def _lock(*keys: str) -> None:
    """Lock conversations in the order of their ids; on SQLite the transaction holds the whole file."""
    if connection.vendor != "sqlite":
        list(Conversation.objects.filter(key__in=keys).order_by("id").select_for_update().values_list("id"))


def _told_in(conversation: str, event: Stored, by: Principal) -> NewEvent:
    """Return an event for another conversation, as if it had been stored there first."""
    body = payload.decoded(event.body.encode())
    if body.get("recipient") == f"chat:{event.conversation}":
        body["recipient"] = f"chat:{conversation}"
    text = msgspec.json.encode(body | {"conversation_id": conversation})
    moved = log.from_bus(f"stream:{conversation}", event.event_id, text.decode(), payload.parse(text), by)
    return moved._replace(starts_no_run=True)
