"""What a person does with a quarantined message: read it again, or discard it. Called by the pages below `/ops/`.

A re-driven message stays what it was: words of an unknown sender on Redis (`bus:redis`). The audit log has who did it.
"""

from django.db import DataError

from conversations import arrivals, audit, envelopes, log
from conversations.actions.acting import acting
from conversations.errors import Conflict, IdReused, Invalid, NotFound, SwitchboardError
from conversations.log.events import NewEvent, Stored
from conversations.models import AuditEntry, Quarantine, RedisPosition
from conversations.models.redis import QuarantineQuerySet
from conversations.rights import Who

MAX_REASON = 2000  # characters: what the audit log keeps
AT_ONCE = 200  # messages that one action discards


def redrive(by: Who, number: int, *, conversation: str = "") -> Stored:
    """Read a quarantined message again as the recorder would, and store it; `conversation` where it names none.

    Raises `Invalid` with the reason when it still cannot be stored, `Conflict` when somebody settled it before or its
    id belongs to another message, `NotFound`. Then nothing has changed.
    """
    target = target_of(number)
    try:
        with acting(by, "redrive", target, right="quarantine") as principal:
            found = _settled(number, "redriven")
            stored = _store(read_again(found, conversation))
            place = {"source": found.source, "entry": found.entry, "conversation": stored.conversation}
            audit.enter(principal, "redrive", target, correlation=place | {"seq": stored.seq})
    except DataError as error:  # what the database itself does not hold
        raise Invalid(f"the database refuses it: {error}") from error
    return stored


def discard(by: Who, number: int, reason: str) -> None:
    """Put a quarantined message aside for good; it stays readable. Raises `Invalid`, `Conflict`, `NotFound`."""
    reason, target = _fit_reason(reason), target_of(number)
    with acting(by, "discard", target, right="quarantine") as principal:
        _settled(number, "discarded")
        audit.enter(principal, "discard", target, reason=reason)


def discard_alike(by: Who, number: int, reason: str) -> int:
    """Discard the oldest 200 open messages `alike` to this one; answer how many. One audit entry each.

    Raises `Invalid`, `NotFound`, and `Conflict` when none is open.
    """
    reason, target = _fit_reason(reason), target_of(number)
    with acting(by, "discard", target, right="quarantine") as principal:
        some = alike(find(number)).select_for_update().order_by("id")
        numbers = list(some.values_list("pk", flat=True)[:AT_ONCE])
        if not numbers:
            raise Conflict("somebody was first: no message like this one is open any more")
        Quarantine.objects.filter(pk__in=numbers).update(outcome="discarded")
        for each in numbers:
            audit.enter(principal, "discard", target_of(each), reason=reason)
    return len(numbers)


def find(number: int) -> Quarantine:
    """Find a quarantined message. Raises `NotFound`."""
    found = Quarantine.objects.filter(pk=number).first()
    if found is None:
        raise NotFound(f"No message {number} is in quarantine.")
    return found


def alike(model: Quarantine) -> QuarantineQuerySet:
    """Keep the open messages of the same stream with the same reason."""
    return Quarantine.objects.open().filter(source=model.source, reason=model.reason)


def settlement(number: int) -> AuditEntry | None:
    """Find who settled it, when and why."""
    done = AuditEntry.objects.filter(target=target_of(number), outcome="done", verb__in=("redrive", "discard"))
    return done.order_by("-seq").first()


def read_again(found: Quarantine, conversation: str = "") -> NewEvent:
    """Read a kept message as one that comes from Redis now. Raises `Invalid` or `TooLarge`, saying what is wrong."""
    if found.is_loss:
        raise Invalid("there is no message: what this row tells of was lost before it was read", code="lost")
    if found.is_truncated:
        kept = f"only the first {len(found.raw):,} of {found.size:,} bytes were kept"
        raise Invalid(f"{kept}, so it cannot be read again: its sender has to send it once more", code="truncated")
    found_at = RedisPosition.objects.filter(stream=found.source).values_list("found_at", flat=True).first() or 0
    raw, named = bytes(found.raw), conversation.strip()
    return arrivals.event_of(found.source, raw, None, entry_id=found.entry, found_at=found_at, conversation=named)


def lacks_conversation(found: Quarantine) -> bool:
    """Tell whether a person may say which conversation it belongs to: it can be read, and names none that fits."""
    try:
        return not found.is_truncated and arrivals.named_by(found.source, envelopes.read(bytes(found.raw))) is None
    except SwitchboardError:
        return False


def target_of(number: int) -> str:
    """Name it as the audit log does."""
    return f"quarantine:{number}"


def _settled(number: int, outcome: str) -> Quarantine:
    """Take it, once. The loser learns who won."""
    found = find(number)
    if not Quarantine.objects.open().filter(pk=number).update(outcome=outcome):
        entry = settlement(number)
        who = f"{entry.principal} was first" if entry else "somebody was first"
        raise Conflict(f"{who}: this message is settled already")
    return found


def _store(event: NewEvent) -> Stored:
    """Append it. As words from Redis, its post counts as sent: the relay does not send it back."""
    (stored,) = log.append([event])
    if stored.clashes:
        raise IdReused("another message with this id is in the record already; discard this one")
    return stored


def _fit_reason(reason: str) -> str:
    reason = reason.strip()
    if not reason:
        raise Invalid("say why: it is what the audit log will show", field="reason")
    if len(reason) > MAX_REASON:
        raise Invalid(f"a reason has at most {MAX_REASON:,} characters", field="reason")
    return reason
