"""Take the words of events out of the record: tables, search, memory, forks, and what is kept of them elsewhere.

What stays is a tombstone, its digest in a chained `event.redacted`, and a line in the journal outside the database.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from django.db import DatabaseError, connection, transaction

from conversations.access.action_context import audited_action, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Unavailable
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log, payload
from conversations.events.log.refold import Gone, Refold
from conversations.events.types.redaction import FIELD_MARK, REDACTED
from conversations.models import Conversation, Redaction, Run, SessionItem
from conversations.models.run import BEGUN
from conversations.redaction import alert_details, call_field, legal_holds, replaced_bodies, selection
from conversations.redaction.replaced_bodies import NamedDigest
from conversations.redaction.selection import Part
from conversations.redaction.tombstones import tombstone
from conversations.search import index_writer

logger = logging.getLogger(__name__)

ID_FIELD = "id"  # what stands for a conversation's id where a redaction names a field


class Redacted(NamedTuple):
    """What was done in one conversation."""

    conversation: str
    seqs: Sequence[int]
    mark: str


def redact(by: Who, key: str, seqs: Collection[int], reason: str, **facts: Any) -> list[Redacted]:
    """Take out what these events say, and all that says the same. Raises Invalid, NotFound, and Conflict where a hold
    is in force or a run is at work. `facts` are for the audit entry."""
    return _redact(by, f"conversation:{key}", lambda: selection.parts_of(key, seqs), reason, "", facts)


def redact_call(by: Who, call: str, field: str, reason: str, **facts: Any) -> list[Redacted]:
    """Take out what stands in one field of a tool call, wherever the call says it; without a field all of the call.
    Raises as `redact` does."""
    return _redact(by, f"tool_call:{call}", lambda: selection.parts_of_call(call, field), reason, field, facts)


def _redact(
    by: Who, target: str, find: Callable[[], list[Part]], reason: str, field: str, facts: dict[str, Any]
) -> list[Redacted]:
    reason = legal_holds.checked_reason(reason)
    with audited_action(by, "redact", target, right="redact") as principal:
        parts = find()
        if not parts:
            raise Conflict("these events are already redacted", code="redacted")
        _lock(parts)
        parts = find()  # a trace may have been moved until it was locked
        lock_for_redaction(parts)
        done = [erase(part, principal, reason, field=field) for part in parts]
        events = {redacted.conversation: list(redacted.seqs) for redacted in done}
        chain.add_entry(
            principal, "redact", target, reason=reason, correlation={**facts, "field": field, "events": events}
        )
    return done


def erase(
    part: Part,
    by: Principal,
    reason: str,
    *,
    older_than: int | None = None,
    refolds: bool = True,
    mark: str = "",
    field: str = "",
) -> Redacted:
    """Take the words of one conversation's events out, inside the action's transaction; open pages are notified.

    `older_than`: of what agents remember only items from before that moment (µs UTC) go. `refolds`: False where the
    caller has more to take out and calls `fold_rest` at its end. `mark`: of a redaction that is done again.
    `field`: all that goes, of a tool call.
    """
    mark = mark or f"{FIELD_MARK if field else 'redaction:'}{secrets.token_hex(16)}"
    row, seqs = part.conversation, part.seqs
    with write_transaction():
        index_writer.forget(row.pk, seqs)
        digests = _put_tombstones(row, seqs, mark, field)
        if field:
            index_writer.index_again(row.pk, seqs)
        name_redacted(row.key, mark, digests, by, reason)
        _forget_elsewhere(row, set(seqs), older_than)
        note(mark, by, reason, conversation=row, seqs=json.dumps(seqs), field=field, is_folded=refolds)
        if refolds:
            _refold(row)  # captions and rows are those of what stands there now
        transaction.on_commit(lambda: forget_drawn(row.key, seqs))
    return Redacted(row.key, seqs, mark)


def fold_rest() -> None:
    """Rebuild the rows and captions of conversations that `erase` left for later: also after a crash. One that fails is
    logged, and tried again the next time."""
    after = 0
    while (pk := _next_unfolded(after)) is not None:
        after = pk
        for row in Conversation.objects.filter(pk=pk):
            try:
                _fold(row)
            except (DatabaseError, Unavailable):
                raise
            except Exception:
                logger.exception("the rows of conversation %s could not be rebuilt after a redaction", row.key)


def _next_unfolded(after: int) -> int | None:
    unfolded = Redaction.objects.filter(is_folded=False, conversation__gt=after).order_by("conversation")
    return unfolded.values_list("conversation", flat=True).first()


def _fold(row: Conversation) -> None:
    unfolded = Redaction.objects.filter(is_folded=False, conversation=row)
    last = unfolded.order_by("-pk").values_list("pk", flat=True).first() or 0
    _refold(row)
    with write_transaction():
        index_writer.caption_again([row.pk])
        unfolded.filter(pk__lte=last).update(is_folded=True)


def _refold(row: Conversation) -> None:
    try:
        Refold(row.pk, row.key).run()
    except Gone:  # one that was moved elsewhere is hidden
        with write_transaction():
            Conversation.objects.filter(pk=row.pk, is_staged=True).update(title="", last_line="")


def forget_drawn(key: str, seqs: Sequence[int]) -> None:
    """Drop what this process has drawn of these events."""
    from conversations.rendering import event_renderer  # late: commands load no templates

    for seq in seqs:
        event_renderer.forget(key, seq)


def name_redacted(key: str, mark: str, digests: Sequence[NamedDigest], by: Principal, reason: str) -> None:
    """Append the `event.redacted` that names what stands in a conversation's redacted events."""
    writer, doer = event_author(by)
    body = {"event": REDACTED, "id": mark, "events": digests, "reason": reason, **doer}
    log.append([log.from_internal(key, body, writer)])


def note(mark: str, by: Principal, reason: str, **what: Any) -> None:
    """Store what was redacted, for the journal and for other processes, inside the transaction."""
    Redaction.objects.create(mark=mark, at=time.time_ns() // 1000, by=str(by), reason=reason, **what)


def newest() -> int:
    """Return the number of the newest redaction. Asked each second: plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT MAX(id) FROM conversations_redaction")
        return int(cursor.fetchone()[0] or 0)


def lock_for_redaction(parts: Sequence[Part]) -> None:
    """Lock the conversations, inside the action's transaction. Raises Conflict where a hold is in force or a run is at
    work."""
    _lock(parts)
    _require_free(parts)


def why_blocked(row: Conversation) -> str:
    """Return why nothing goes there now, as a sentence; empty where nothing is in the way."""
    try:
        _require_free([Part(row, ())])
    except Conflict as error:
        return error.sentence
    return ""


def _lock(parts: Sequence[Part]) -> None:
    """Lock the conversations in the order of their rows (law B)."""
    ids = [part.conversation.pk for part in parts]
    list(Conversation.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))


def _require_free(parts: Sequence[Part]) -> None:
    """Raise Conflict if a hold is in force, or if a run has begun there and is not over: it remembers the words, and
    what was decided about its calls."""
    legal_holds.require_none([part.conversation.pk for part in parts])
    run = Run.objects.filter(BEGUN, conversation__in=[part.conversation for part in parts]).first()
    if run is not None:
        raise Conflict(f"the agent {run.agent} is active in conversation {run.conversation.key!r}: stop its run first")


def _put_tombstones(row: Conversation, seqs: Sequence[int], mark: str, field: str) -> list[NamedDigest]:
    """Replace bodies; return how `event.redacted` names what stands there."""
    with connection.cursor() as cursor:
        events = replaced_bodies.read(cursor, row, seqs)
        if field:  # a few events, of one call: what is in one of them may be in the others
            bodies = {seq: body for seq, _, body in events}
            left: Iterable[tuple[int, str]] = (bodies | call_field.without(bodies, field)).items()
        else:
            left = (
                (seq, tombstone(body, payload.parse(earlier.encode()) if earlier else None))
                for seq, body, earlier in replaced_bodies.with_earlier(cursor, row, events)
            )
        return [replaced_bodies.replace(cursor, row, seq, body, mark) for seq, body in left]


def _forget_elsewhere(row: Conversation, seqs: Collection[int], older_than: int | None) -> None:
    """Take out what else may repeat the words: agents' memory, the state of runs that are over, alarms and alerts."""
    items = SessionItem.objects.filter(conversation=row.key)
    (items if older_than is None else items.filter(at__lt=older_than)).delete()
    Run.objects.filter(conversation=row).exclude(BEGUN).update(state=None, state_mac=None)
    alert_details.erase(row, seqs)
