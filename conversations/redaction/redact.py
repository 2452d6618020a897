"""Take the words of events out of the record: tables, search, memory, forks, and what is kept of them elsewhere.

What stays is a tombstone, its digest in a chained `event.redacted`, and a line in the journal outside of the database.
"""

import json
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from django.db import connection, transaction

from conversations.access.action_context import audited_action, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.events.log.refold import Refold
from conversations.events.types.redaction import REDACTED
from conversations.models import Alarm, AlertDelivery, Conversation, Event, Redaction, Run, SessionItem
from conversations.models.run import LIVE
from conversations.redaction import legal_holds, selection
from conversations.redaction.selection import Part
from conversations.redaction.tombstones import tombstone
from conversations.search import index_writer

_listeners: list[Callable[[Sequence[Redaction]], None]] = []


class Redacted(NamedTuple):
    """What was done in one conversation."""

    conversation: str
    seqs: Sequence[int]
    mark: str


def redact(by: Who, key: str, seqs: Collection[int], reason: str) -> list[Redacted]:
    """Take out what these events say, and all that says the same. Raises Invalid, NotFound, and Conflict where a hold
    is in force or a run is at work."""
    reason = legal_holds.checked_reason(reason)
    target = f"conversation:{key}"
    with audited_action(by, "redact", target, right="redact") as principal:
        parts = selection.parts_of(key, seqs)
        if not parts:
            raise Conflict("these events are redacted already", code="redacted")
        lock(parts)
        legal_holds.require_none([part.conversation.pk for part in parts])
        require_idle(parts)
        done = [erase(part, principal, reason) for part in parts]
        facts = {"conversation": key, "events": {redacted.conversation: list(redacted.seqs) for redacted in done}}
        chain.enter(principal, "redact", target, reason=reason, correlation=facts)
    return done


def erase(
    part: Part, by: Principal, reason: str, *, older_than: int | None = None, refolds: bool = True, mark: str = ""
) -> Redacted:
    """Take the words of one conversation's events out, inside the action's transaction; who looks at pages is told.

    `older_than`: of what agents remember only items from before that moment (µs UTC) go. `refolds`: False where the
    caller has more to take out and has the rows folded anew at its end. `mark`: of a redaction that is done again.
    """
    row, seqs, mark = part.conversation, part.seqs, mark or f"redaction:{secrets.token_hex(16)}"
    with write_transaction():
        index_writer.forget(row.pk, seqs)
        digests = [{"seq": seq, "digest": digest} for seq, digest in _put_tombstones(row, seqs, mark)]
        writer, doer = event_author(by)
        body = {"event": REDACTED, "id": mark, "events": digests, "reason": reason, **doer}
        log.append([log.from_internal(row.key, body, writer)])
        _forget_elsewhere(row, older_than)
        made = Redaction.objects.create(
            mark=mark, conversation=row, seqs=json.dumps(seqs), at=time.time_ns() // 1000, by=str(by), reason=reason
        )
        if refolds:
            Refold(row.pk, row.key).run()  # captions and rows are those of what stands there now
        transaction.on_commit(lambda: forget_drawn(row.key, seqs))
        transaction.on_commit(lambda: _tell([made]))
    return Redacted(row.key, seqs, mark)


def forget_drawn(key: str, seqs: Sequence[int]) -> None:
    """Drop what this process has drawn of these events."""
    from conversations.rendering import event_renderer  # late: commands load no templates

    for seq in seqs:
        event_renderer.forget(key, seq)


def on_redacted(listener: Callable[[Sequence[Redaction]], None]) -> Callable[[], None]:
    """Be told of what this process redacted, after the commit; answer a function that ends it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def _tell(made: Sequence[Redaction]) -> None:
    for listener in tuple(_listeners):
        listener(made)


def lock(parts: Sequence[Part]) -> None:
    """Lock the conversations in the order of their rows (law B)."""
    ids = [part.conversation.pk for part in parts]
    list(Conversation.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))


def require_idle(parts: Sequence[Part]) -> None:
    """Raise Conflict while a run works or waits there: what it remembers has the words."""
    run = Run.objects.filter(conversation__in=[part.conversation for part in parts], status__in=LIVE).first()
    if run is not None:
        raise Conflict(f"{run.agent} is at work in conversation {run.conversation.key!r}: stop its run first")


def _put_tombstones(row: Conversation, seqs: Sequence[int], mark: str) -> list[tuple[int, str]]:
    """Replace bodies; return each event's number and the digest of what stands there."""
    placed = []
    bodies = Event.objects.filter(conversation=row, seq__in=seqs).order_by("seq").values_list("seq", "body")
    with connection.cursor() as cursor:
        for seq, body in list(bodies):
            left = tombstone(body)
            sql = "UPDATE conversations_event SET body=%s,salt=NULL,erased_by=%s WHERE conversation_id=%s AND seq=%s"
            cursor.execute(sql, [left, mark, row.pk, seq])
            placed.append((seq, hash_chain.tombstone_digest(seq, mark, left)))
    return placed


def _forget_elsewhere(row: Conversation, older_than: int | None) -> None:
    """Take out what else may repeat the words: agents' memory, the state of runs that are over, alarms and alerts."""
    items = SessionItem.objects.filter(conversation=row.key)
    (items if older_than is None else items.filter(at__lt=older_than)).delete()
    Run.objects.filter(conversation=row).exclude(status__in=LIVE).update(state=None, state_mac=None)
    alarms = Alarm.objects.filter(conversation=row.key)
    AlertDelivery.objects.filter(alarm__in=alarms).exclude(status="waiting").update(subject="redacted", body="{}")
    alarms.update(detail="")
