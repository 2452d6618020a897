"""What a person does with a quarantined message: read it again, or discard it. Called by the pages below `/ops/`.

A re-driven message stays what it was: words of an unknown sender on Redis (`bus:redis`). The audit log has who did it.
"""

from django.db import DataError

from conversations import audit, envelopes, log
from conversations.actions.acting import acting
from conversations.envelopes import Said
from conversations.errors import Conflict, IdReused, Invalid, NotFound, SwitchboardError
from conversations.log.events import NewEvent, Stored
from conversations.models import AuditEntry, Quarantine, RedisPosition
from conversations.models.redis import QuarantineQuerySet
from conversations.principals import REDIS
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
    raw = bytes(found.raw)
    try:
        body = raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"expected UTF-8: byte {error.start:,} is none") from error
    said = envelopes.read(raw)
    envelopes.check_topic(found.source)
    if conversation := conversation.strip():
        _file(said, found.source, conversation)
    event = log.of_payload(found.source, said.id, body, said, REDIS)
    envelopes.check_named(found.source, event.conversation)
    return event._replace(is_live=_is_live(found))


def lacks_conversation(found: Quarantine) -> bool:
    """Tell whether a person may say which conversation it belongs to: it can be read, and names none that fits."""
    try:
        return not found.is_truncated and not _named(found.source, envelopes.read(bytes(found.raw)))
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


def _file(said: Said, source: str, conversation: str) -> None:
    """Put a message that names no conversation into this one. Raises `Invalid` when it names one that fits."""
    if own := _named(source, said):
        raise Invalid(f"it names its own conversation, {own}: leave this empty", field="conversation")
    if len(conversation) > envelopes.MAX_KEY or envelopes.fit(conversation) != conversation:
        raise Invalid(f"expected at most {envelopes.MAX_KEY} characters", field="conversation")
    said.conversation_id = conversation


def _named(source: str, said: Said) -> str | None:
    try:
        return envelopes.conversation_of(source, said)
    except Invalid:
        return None


def _is_live(found: Quarantine) -> bool:
    """Tell whether it came after first contact with its stream; older ones are history and start nothing (3.4)."""
    found_at = RedisPosition.objects.filter(stream=found.source).values_list("found_at", flat=True).first()
    milliseconds = found.entry.partition("-")[0]
    return found_at is None or not milliseconds.isdecimal() or int(milliseconds) * 1000 >= found_at


def _fit_reason(reason: str) -> str:
    reason = reason.strip()
    if not reason:
        raise Invalid("say why: it is what the audit log will show", field="reason")
    if len(reason) > MAX_REASON:
        raise Invalid(f"a reason has at most {MAX_REASON:,} characters", field="reason")
    return reason
