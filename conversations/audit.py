"""The audit chain: who did what to what, when, why, with what outcome. Actions call `enter`, edges call `refuse`."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Literal

from django.db.models import Max

from conversations.chains import PAGE, Verdict
from conversations.log import chain
from conversations.log.writing import is_writing, writing
from conversations.models import AuditEntry, AuditHead
from conversations.principals import Principal

Outcome = Literal["done", "refused"]

FIRST = chain.seed("audit")  # what entry 1 hangs on
_NONE: Mapping[str, str] = MappingProxyType({})
_circumstances: ContextVar[Mapping[str, str]] = ContextVar("audit_circumstances", default=_NONE)


@contextmanager
def during(**circumstances: str) -> Iterator[None]:
    """Add these to the correlation of every entry made inside: the request's id, the address it came from."""
    token = _circumstances.set({**_circumstances.get(), **circumstances})
    try:
        yield
    finally:
        _circumstances.reset(token)


def enter(
    principal: Principal,
    verb: str,
    target: str,
    *,
    outcome: Outcome = "done",
    reason: str = "",
    before: str = "",
    after: str = "",
    acting_as: str = "",
    correlation: Mapping[str, Any] | None = None,  # any JSON value
) -> AuditEntry:
    """Add one entry to the chain, inside the action's `writing()`, as its last step: the audit head is locked last.

    `before` and `after` are digests made by `digest`. Raises `RuntimeError` outside of `writing()`.
    """
    if not is_writing():
        raise RuntimeError("audit.enter belongs inside writing(): one action is one transaction (law E)")
    entry = AuditEntry(
        at=time.time_ns() // 1000,
        principal=_fit(str(principal), 160),
        acting_as=_fit(acting_as, 200),
        verb=_fit(verb, 60),
        target=_fit(target, 300),
        before=before,
        after=after,
        reason=_fit(reason, 2000),
        outcome=outcome,
        correlation=_fit(_compact({**_circumstances.get(), **(correlation or {})}), 4000),
    )
    return _chained(entry)


def refuse(principal: Principal, verb: str, target: str, *, reason: str = "", acting_as: str = "") -> AuditEntry:
    """Record a refusal in a transaction of its own, after the refused one rolled back (law E)."""
    if is_writing():
        raise RuntimeError("audit.refuse comes after the rollback, outside of writing()")
    with writing():
        return enter(principal, verb, target, outcome="refused", reason=reason, acting_as=acting_as)


def digest(state: object) -> str:
    """Answer the SHA-256 of a state's compact JSON, for `before` and `after`."""
    return hashlib.sha256(_compact(state).encode()).hexdigest()


def last(verb: str, target: str) -> AuditEntry | None:
    """Find who did this to that last, to tell the loser of a race."""
    return AuditEntry.objects.filter(verb=verb, target=target, outcome="done").order_by("-seq").first()


def link(prev: str, entry: AuditEntry) -> str:
    """Answer the hash this entry must have after `prev`: SHA-256 over these, joined by NUL, lower hex."""
    columns = (entry.acting_as, entry.verb, entry.target, entry.before, entry.after, entry.reason, entry.outcome)
    parts = (prev, str(entry.seq), str(entry.at), entry.principal, *columns, entry.correlation)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def verify() -> Verdict:
    """Walk the chain by pages up to the head it had when asked; stop at the first bad entry."""
    head, prev, seq = _head(), FIRST, 0
    for entry in _entries(upto=head.seq):
        seq += 1
        if entry.seq != seq:
            return _bad(seq, "missing")
        if entry.prev_hash != prev or link(prev, entry) != entry.hash:
            return _bad(seq, "changed after it was written: the stored hash is not the computed one")
        prev = entry.hash
    if seq != head.seq:
        return _bad(seq + 1, f"missing: the head says {head.seq} entries")
    if prev != head.hash:
        return _bad(seq, "the audit head has another hash")
    return _verify_tail(seq)


def _entries(*, upto: int) -> Iterator[AuditEntry]:
    # By pages: one long read would keep the WAL from being checkpointed.
    after, page = 0, [AuditEntry()]
    while page and after < upto:
        page = list(AuditEntry.objects.filter(seq__gt=after, seq__lte=upto).order_by("seq")[:PAGE])
        yield from page
        after = page[-1].seq if page else upto


def _chained(entry: AuditEntry) -> AuditEntry:
    head, _ = AuditHead.objects.select_for_update().get_or_create(id=1, defaults={"hash": FIRST})
    entry.seq, entry.prev_hash = head.seq + 1, head.hash
    entry.hash = link(head.hash, entry)
    entry.save(force_insert=True)
    AuditHead.objects.filter(id=1).update(seq=entry.seq, hash=entry.hash)
    return entry


def _head() -> AuditHead:
    return AuditHead.objects.filter(id=1).first() or AuditHead(hash=FIRST)


def _verify_tail(seq: int) -> Verdict:
    # The entries first, the head after: a head only grows, in the transaction that adds the entry.
    last_seq = AuditEntry.objects.aggregate(last=Max("seq"))["last"] or 0
    head = _head().seq
    if last_seq > head:
        return _bad(head + 1, f"beyond the audit head, which is {head}")
    return Verdict(seq, ok=True)


def _bad(seq: int, why: str) -> Verdict:
    return Verdict(seq - 1, ok=False, first_bad=f"audit entry {seq}", why=why)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if value else ""


def _fit(text: str, limit: int) -> str:
    """Replace what a column or the chain cannot hold: NUL, lone surrogates, too many characters."""
    clean = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
