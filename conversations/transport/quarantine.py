"""What a person does with a quarantined message: retry or discard it. Called by the pages below `/ops/`.

A retried message stays what it was: from an unknown sender on Redis (`bus:redis`). The audit log has who retried it.
"""

from django.db import DataError

from conversations.access.action_context import audited_action, check_reason
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, IdReused, Invalid, NotFound, SwitchboardError
from conversations.events import epoch, log, payload
from conversations.events.log.records import NewEvent, Stored
from conversations.models import AuditEntry, Quarantine, RedisPosition
from conversations.models.quarantine import QuarantineQuerySet
from conversations.transport import decode_entry

AT_ONCE = 200  # messages that one action discards


def redrive(by: Who, number: int, *, conversation: str = "") -> Stored:
    """Parse a quarantined message again as the recorder would, and store it; `conversation` if it names none.

    Raises Invalid with the reason if it still cannot be stored, Conflict if someone settled it before or its id belongs
    to another message, NotFound. Then nothing has changed.
    """
    target = target_of(number)
    try:
        with audited_action(by, "redrive", target, right="quarantine") as principal:
            row = _settled(number, "redriven")
            stored = _store(read_again(row, conversation))
            origin = {"source": row.source, "entry": row.entry, "conversation": stored.conversation}
            chain.add_entry(principal, "redrive", target, correlation=origin | {"seq": stored.seq})
    except DataError as error:  # what the database itself does not hold
        raise Invalid(f"the database rejects the message: {error}") from error
    return stored


def discard(by: Who, number: int, reason: str) -> None:
    """Discard a quarantined message for good; it stays readable. Raises Invalid, Conflict, NotFound."""
    reason, target = _fit_reason(reason), target_of(number)
    with audited_action(by, "discard", target, right="quarantine") as principal:
        _settled(number, "discarded")
        chain.add_entry(principal, "discard", target, reason=reason)


def discard_alike(by: Who, number: int, reason: str) -> int:
    """Discard the oldest 200 open messages `alike` to this one; return how many. One audit entry each.

    Raises Invalid, NotFound, and Conflict if none is open.
    """
    reason, target = _fit_reason(reason), target_of(number)
    with audited_action(by, "discard", target, right="quarantine") as principal:
        rows = alike(find(number)).select_for_update().order_by("id")
        numbers = list(rows.values_list("pk", flat=True)[:AT_ONCE])
        if not numbers:
            raise Conflict("someone else was faster: no similar message is waiting anymore")
        Quarantine.objects.filter(pk__in=numbers).update(outcome="discarded")
        for each in numbers:
            chain.add_entry(principal, "discard", target_of(each), reason=reason)
    return len(numbers)


def find(number: int) -> Quarantine:
    """Return a quarantined message. Raises NotFound."""
    row = Quarantine.objects.filter(pk=number).first()
    if row is None:
        raise NotFound(f"There is no message {number} in quarantine.")
    return row


def alike(model: Quarantine) -> QuarantineQuerySet:
    """Return the open messages of the same stream with the same reason."""
    return Quarantine.objects.open().filter(source=model.source, reason=model.reason)


def settlement(number: int) -> AuditEntry | None:
    """Return the audit entry of who settled it; None while it is open."""
    done = AuditEntry.objects.filter(target=target_of(number), outcome="done", verb__in=("redrive", "discard"))
    return done.order_by("-seq").first()


def read_again(row: Quarantine, conversation: str = "") -> NewEvent:
    """Parse a stored message as if it came from Redis now. Raises Invalid or TooLarge that says what is wrong."""
    if row.is_loss:
        raise Invalid("there is no message: it was lost before it could be read", code="lost")
    if row.is_truncated:
        message = f"only the first {len(row.raw):,} of {row.size:,} bytes were kept"
        raise Invalid(f"{message}, so it cannot be retried: the sender has to send it again", code="truncated")
    found_at = RedisPosition.objects.filter(stream=row.source).values_list("found_at", flat=True).first() or 0
    found_at = max(found_at, epoch.went_back_at())
    raw, named = bytes(row.raw), conversation.strip()
    return decode_entry.event_from_entry(
        row.source, raw, None, entry_id=row.entry, found_at=found_at, conversation=named
    )


def lacks_conversation(row: Quarantine) -> bool:
    """Return whether a person may choose its conversation: it can be parsed, and names no valid one."""
    try:
        return (
            not row.is_truncated and decode_entry.conversation_id_of(row.source, payload.parse(bytes(row.raw))) is None
        )
    except SwitchboardError:
        return False


def target_of(number: int) -> str:
    """Return its name in the audit log."""
    return f"quarantine:{number}"


def _settled(number: int, outcome: str) -> Quarantine:
    """Settle a message, once. The loser of a race learns who won."""
    row = find(number)
    if not Quarantine.objects.open().filter(pk=number).update(outcome=outcome):
        entry = settlement(number)
        who = f"{entry.principal} was faster" if entry else "someone else was faster"
        raise Conflict(f"{who}: this message is already resolved")
    return row


def _store(event: NewEvent) -> Stored:
    """Append the event. As a message from Redis, its post counts as sent: the relay does not send it back."""
    (stored,) = log.append([event])
    if stored.clashes:
        raise IdReused("the record already contains a different message with this id; discard this one")
    return stored


def _fit_reason(reason: str) -> str:
    reason = reason.strip()
    if not reason:
        raise Invalid("a reason is required for the audit log", field="reason")
    check_reason(reason)
    return reason
