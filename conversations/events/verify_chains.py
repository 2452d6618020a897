"""Walk the hash chains of the record and say where the first bad row is. `evidence/verify_record.py` calls it for
`manage.py verify` and the audit page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, Exists, Max, OuterRef, Sum

from conversations.core import principals
from conversations.events import payload
from conversations.events.log import bounded_reads, hash_chain
from conversations.events.log.import_staging import PREFIX
from conversations.events.types.redaction import ID_ERASED, REDACTED, new_id_of, redactions_of
from conversations.models import Conversation, Event

PAGE = 5_000  # rows held at a time, fewer once their bodies pass 4 MiB
_EVENTS = "FROM conversations_event WHERE conversation_id=%s AND seq<=%s"


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a walk found: rows seen, whether all were whole, else the first bad row and what is wrong with it."""

    count: int
    ok: bool
    first_bad: str = ""
    why: str = ""


class EventRow(NamedTuple):
    """The columns of an event, all of which its digest and hash cover."""

    seq: int
    kind: str
    at: int
    principal: str
    event_id: str | None
    salt: bytes | None
    digest: str
    hash: str
    run: str | None
    turn: int | None
    erased_by: str | None
    body: str  # last, as the bounded reader has it


Link = tuple[int, str]  # an event's number, and the hash it has


def verify_conversation(
    conversation: Conversation, *, leaves: Iterable[Link] = (), after: Link | None = None
) -> ChainReport:
    """Walk one history up to the head it had when asked, so that a live writer does not look like a fault.

    `leaves`: what hashes the Merkle tree has of it, in its order. `after`: an event that was checked before, behind
    which the walk begins.
    """
    if fault := _fault_of_key(conversation):
        return ChainReport(0, ok=False, first_bad=f"conversation {conversation.key!r}", why=fault)
    identity = hash_chain.identity_of(conversation.key, conversation.key_digest)
    seq, prev = after or (0, hash_chain.seed(identity))
    oldest, first = 1, seq
    redactions, expected = _Redactions(conversation), iter(leaves)
    leaf = next(expected, None)
    for row in _rows(conversation.pk, after=seq, upto=conversation.head_seq):
        seq += 1
        format_ = hash_chain.format_of(prev, identity, row, oldest=oldest, is_tombstone=row.salt is None)
        if fault := _fault(seq, row, redactions, format_):
            return _broken(conversation, seq, fault)
        prev, oldest = row.hash, format_
        while leaf is not None and leaf[0] <= seq:
            if leaf != (seq, prev):
                return _broken(conversation, leaf[0], "differs from the signed tree: the chain was rebuilt")
            leaf = next(expected, None)
    if seq != conversation.head_seq:
        return _broken(conversation, seq + 1, f"missing: the head counts {conversation.head_seq} events")
    if seq and prev != conversation.head_hash:
        return _broken(conversation, seq, "the conversation's head has a different hash")
    if leaf is not None:
        return _broken(conversation, seq + 1, f"missing: the signed tree has {leaf[0]} events of it")
    tail = _verify_tail(conversation, seq)
    return replace(tail, count=tail.count - first) if tail.ok else tail


def conversations() -> Iterator[Conversation]:
    """Read every conversation, oldest first, each as it is when its turn comes."""
    for pk in _ids():
        if (conversation := Conversation.objects.filter(pk=pk).first()) is not None:
            yield conversation


def verify_visible() -> ChainReport:
    """Look for a conversation that is hidden."""
    if (hidden := _hidden()) is None:
        return ChainReport(0, ok=True)
    why = "hidden: it is marked as staged, although its import has ended"
    return ChainReport(0, ok=False, first_bad=f"conversation {hidden.key!r}", why=why)


def verify_orphans() -> ChainReport:
    """Look for an event without its conversation."""
    its_conversation = Conversation.objects.filter(pk=OuterRef("conversation_id"))  # PostgreSQL hashes no large NOT IN
    orphans = Event.objects.filter(~Exists(its_conversation)).order_by("id")
    orphan = orphans.values_list("seq", "conversation_id").first()
    if orphan is None:
        return ChainReport(0, ok=True)
    seq, conversation = orphan
    return ChainReport(0, ok=False, first_bad=f"event {seq}", why=f"its conversation (row {conversation}) is gone")


def staged() -> tuple[int, int]:
    """Count the conversations that imports are staging, or left behind, and their events."""
    totals = Conversation.objects.filter(is_staged=True, key__startswith=PREFIX).aggregate(
        count=Count("pk"), events=Sum("head_seq")
    )
    return totals["count"], totals["events"] or 0


def _hidden() -> Conversation | None:
    """Return the first conversation that is hidden and neither an import's nor moved: one that moved says so last, but
    for what was redacted since."""
    hidden = Conversation.objects.filter(is_staged=True).exclude(key__startswith=PREFIX)
    later = Event.objects.filter(conversation=OuterRef("conversation"), seq__gt=OuterRef("seq")).exclude(kind=REDACTED)
    moved = Event.objects.filter(
        conversation=OuterRef("pk"), kind="conversation.moved", principal=str(principals.SYSTEM)
    )
    return hidden.exclude(Exists(moved.exclude(Exists(later)))).order_by("pk").first()


def _ids() -> Iterator[int]:
    # By pages, like everything here: one long read would keep the WAL from being checkpointed.
    after, ids = 0, [0]
    while ids:
        ids = list(
            Conversation.objects.exclude(is_staged=True, key__startswith=PREFIX)
            .filter(pk__gt=after)
            .order_by("pk")
            .values_list("pk", flat=True)[:PAGE]
        )
        yield from ids
        after = ids[-1] if ids else after


def _rows(conversation: int, *, after: int, upto: int) -> Iterator[EventRow]:
    names = ",".join(EventRow._fields)
    with connection.cursor() as cursor:
        for page in bounded_reads.pages(cursor, names, _EVENTS, [conversation, upto], after=after, limit=PAGE):
            yield from map(EventRow._make, page)


def _fault_of_key(conversation: Conversation) -> str:
    salt, named = conversation.key_salt, set[str]()
    if salt is None and conversation.key_digest:
        events = Event.objects.filter(conversation=conversation, kind=ID_ERASED, seq__lte=conversation.head_seq)
        bodies = events.values_list("principal", "body")
        named = {new_id_of(body) for principal, body in bodies if principals.is_people(principal)}
    salt = bytes(salt) if salt is not None else None
    return hash_chain.fault_of_key(conversation.key, salt, conversation.key_digest, named)


def _fault(seq: int, row: EventRow, redactions: "_Redactions", format_: int) -> str:
    if row.seq != seq:
        return "missing"
    if fault := _fault_of_body(row, redactions):
        return fault
    if row.turn is not None and type(row.turn) is not int:
        return "the turn was changed: it is not a number"
    if not format_:
        what = ", or the conversation's id was: " if seq == 1 else ": "
        return f"changed after it was written{what}the stored hash does not match the computed one"
    return _fault_of_format_1(row) if format_ == 1 else ""


def _fault_of_body(row: EventRow, redactions: "_Redactions") -> str:
    if row.salt is None:
        return redactions.fault_of(row)
    if len(row.salt) != hash_chain.SALT or hash_chain.digest(bytes(row.salt), str(row.body)) != row.digest:
        return "the body was changed after it was written"
    return ""


def _fault_of_format_1(row: EventRow) -> str:
    """Return what is wrong with the columns that format 1 does not cover."""
    if row.event_id == "":
        return "the event's id was changed: it is empty"
    if row.erased_by is not None and row.salt is not None:
        return "marked as erased, although nobody erased it"
    if (row.run, row.turn) != _run_of(row):
        return "the run or turn was changed: it does not match the body"
    return ""


class _Redactions:
    """What the `event.redacted` of a conversation name: read page by page, when an event without a salt is met."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._upto = 0  # the last event of the page that is held
        self._digests: dict[int, set[str]] = {}

    def fault_of(self, row: EventRow) -> str:
        """Return what is wrong with an event that has no salt."""
        if row.seq > self._upto:
            self._read(row.seq)
        if row.seq not in self._digests:
            return "the salt is missing, so the body cannot be checked for changes, and no event.redacted names it"
        if hash_chain.tombstone_digest(row.seq, row.erased_by, str(row.body)) not in self._digests[row.seq]:
            return "what stands in place of the redacted body was changed: event.redacted names other content"
        return ""

    def _read(self, first: int) -> None:
        self._upto = first + PAGE - 1
        self._digests = {}
        events = Event.objects.filter(
            conversation=self._conversation, kind=REDACTED, seq__gt=first, seq__lte=self._conversation.head_seq
        ).order_by("seq")
        for seq, principal, body in events.values_list("seq", "principal", "body").iterator(chunk_size=100):
            if not principals.is_people(principal):
                continue
            for redacted in redactions_of(body):
                if first <= redacted.seq <= self._upto and redacted.seq < seq:
                    self._digests.setdefault(redacted.seq, set()).add(redacted.digest)


def _run_of(row: EventRow) -> tuple[str | None, int | None]:
    """Return the run and the turn that a body tells; those of a claim count nothing."""
    if not principals.is_ours(row.principal):
        return None, None
    parsed = payload.parse(row.body.encode())
    return (parsed.run_id[:64] if parsed.run_id else None), parsed.turn


def _verify_tail(conversation: Conversation, seq: int) -> ChainReport:
    # The events first, the head after: a head only grows, in the transaction that adds the events.
    last = Event.objects.filter(conversation_id=conversation.pk).aggregate(last=Max("seq"))["last"] or 0
    head = Conversation.objects.values_list("head_seq", flat=True).filter(pk=conversation.pk).first() or 0
    if last > head:
        return _broken(conversation, head + 1, f"after the conversation's head, which is {head}")
    return ChainReport(seq, ok=True)


def _broken(conversation: Conversation, seq: int, why: str) -> ChainReport:
    return ChainReport(seq - 1, ok=False, first_bad=f"conversation {conversation.key!r}, event {seq}", why=why)
