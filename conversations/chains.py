"""Walk the hash chains of the record and say where the first bad row is. Called by `manage.py verify` and the audit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.db.models import Max

from conversations.log import chain
from conversations.models import Conversation, Event

PAGE = 5_000  # rows held at a time


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a walk found: rows seen, whether all were whole, else the first bad row and what is wrong with it."""

    count: int
    ok: bool
    first_bad: str = ""
    why: str = ""


class Row(NamedTuple):
    """The columns of an event that its digest and hash cover."""

    seq: int
    kind: str
    at: int
    principal: str
    event_id: str | None
    body: str
    salt: bytes | None
    digest: str
    hash: str


def verify_conversation(conversation: Conversation) -> Verdict:
    """Walk one history up to the head it had when asked, so that a live writer does not look like a fault."""
    prev, seq = chain.seed(conversation.key), 0
    for row in _rows(conversation.pk, upto=conversation.head_seq):
        seq += 1
        if fault := _fault(prev, seq, conversation.key, row):
            return _bad(conversation, seq, fault)
        prev = row.hash
    if seq != conversation.head_seq:
        return _bad(conversation, seq + 1, f"missing: the head says {conversation.head_seq} events")
    if seq and prev != conversation.head_hash:
        return _bad(conversation, seq, "the conversation's head has another hash")
    return _verify_tail(conversation, seq)


def verify_conversations() -> Iterator[tuple[Conversation, Verdict]]:
    """Walk every conversation, oldest first; not what an import is still staging, nor what went away meanwhile."""
    for pk in _ids():
        conversation = Conversation.objects.filter(pk=pk).first()  # as it is now, not when its page was read
        if conversation is None:
            continue
        verdict = verify_conversation(conversation)
        if verdict.ok or Conversation.objects.filter(pk=pk).exists():
            yield conversation, verdict


def verify_events() -> Verdict:
    """Walk all histories; stop at the first bad event."""
    count = 0
    for _, verdict in verify_conversations():
        count += verdict.count
        if not verdict.ok:
            return replace(verdict, count=count)
    orphan = Event.objects.exclude(conversation_id__in=Conversation.objects.values("id")).order_by("id").first()
    if orphan:
        why = f"its conversation (row {orphan.conversation_id}) is gone"
        return Verdict(count, ok=False, first_bad=f"event {orphan.seq}", why=why)
    return Verdict(count, ok=True)


def _ids() -> Iterator[int]:
    # By pages, like everything here: one long read would keep the WAL from being checkpointed.
    after, ids = 0, [0]
    while ids:
        ids = list(
            Conversation.objects.visible().filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:PAGE]
        )
        yield from ids
        after = ids[-1] if ids else after


def _rows(conversation: int, *, upto: int) -> Iterator[Row]:
    after, events = 0, Event.objects.filter(conversation_id=conversation).order_by("seq")
    while after < upto:
        page = [Row(*values) for values in events.filter(seq__gt=after, seq__lte=upto).values_list(*Row._fields)[:PAGE]]
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq


def _fault(prev: str, seq: int, key: str, row: Row) -> str:
    if row.seq != seq:
        return "missing"
    if row.salt is not None and chain.digest(bytes(row.salt), str(row.body)) != row.digest:
        return "the body was changed after it was written"
    if row.hash != chain.link(prev, key, seq, row.kind, row.at, row.principal, row.event_id, row.digest):
        return "changed after it was written: the stored hash is not the computed one"
    return ""


def _verify_tail(conversation: Conversation, seq: int) -> Verdict:
    # The events first, the head after: a head only grows, in the transaction that adds the events.
    last = Event.objects.filter(conversation_id=conversation.pk).aggregate(last=Max("seq"))["last"] or 0
    head = Conversation.objects.values_list("head_seq", flat=True).filter(pk=conversation.pk).first() or 0
    if last > head:
        return _bad(conversation, head + 1, f"beyond the conversation's head, which is {head}")
    return Verdict(seq, ok=True)


def _bad(conversation: Conversation, seq: int, why: str) -> Verdict:
    return Verdict(seq - 1, ok=False, first_bad=f"conversation {conversation.key!r}, event {seq}", why=why)
