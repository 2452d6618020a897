"""The audit chain: who did what to what, when, why, with what outcome. Actions call `add_entry`, endpoints `refuse`.

Format 2 hashes the actor, acting as, target, reason and correlation as one salted digest: the personal part of an entry
can be erased (`redaction.audit_entries`) without changing the chain. Entries of format 1 have no digest and were hashed
in the clear.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Max

from conversations.access.audit import entry_facts
from conversations.core.json_values import canonical
from conversations.core.principals import Principal
from conversations.core.write_transaction import in_write_transaction, write_transaction
from conversations.events import commit_listeners
from conversations.events.log import hash_chain
from conversations.events.verify_chains import PAGE, ChainReport
from conversations.models import AuditEntry, AuditHead, AuditSpan

Outcome = Literal["done", "refused"]

FIRST = hash_chain.seed("audit")  # what entry 1 hangs on
MAX_REASON = 2000  # characters of a reason that are kept
ERASE = "erase_entries"  # the verb of entries that name others which were erased
ERASED = "[erased]"  # in place of their reason
_NONE: Mapping[str, str] = MappingProxyType({})
# Plain SQL: every action ends with these statements, and Django takes three times as long to make them as to run them.
_READ_HEAD = "SELECT seq,hash FROM conversations_audithead WHERE id=1"
_MOVE_HEAD = "UPDATE conversations_audithead SET seq=%s,hash=%s WHERE id=1"
_WIDEN_SPAN = """UPDATE conversations_auditspan SET earliest=CASE WHEN earliest<%s THEN earliest ELSE %s END,
latest=CASE WHEN latest>%s THEN latest ELSE %s END WHERE span=%s"""
_circumstances: ContextVar[Mapping[str, str]] = ContextVar("audit_circumstances", default=_NONE)


@contextmanager
def during(**circumstances: str) -> Iterator[None]:
    """Add these to the correlation of every entry made inside the block: the request's id, its address."""
    token = _circumstances.set({**_circumstances.get(), **circumstances})
    try:
        yield
    finally:
        _circumstances.reset(token)


def add_entry(
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
    """Append one entry to the chain, inside the action's `write_transaction()` and as its last step: the audit head is
    locked last.

    `before` and `after` come from `digest`. Raises RuntimeError outside `write_transaction()`.
    """
    if not in_write_transaction():
        raise RuntimeError(
            "chain.add_entry must be called inside write_transaction(): one action, one transaction (law E)"
        )
    entry = AuditEntry(
        at=time.time_ns() // 1000,
        principal=_fit(str(principal), 160),
        acting_as=_fit(acting_as, 200),
        verb=_fit(verb, 60),
        target=_fit(target, 300),
        before=before,
        after=after,
        reason=_fit(reason, MAX_REASON),
        outcome=outcome,
        correlation=_clean(entry_facts.as_text({**_circumstances.get(), **(correlation or {})})),
    )
    return _chained(entry)


def refuse(principal: Principal, verb: str, target: str, *, reason: str = "", acting_as: str = "") -> AuditEntry:
    """Record a refusal in a transaction of its own, after the refused action was rolled back (law E)."""
    if in_write_transaction():
        raise RuntimeError("chain.refuse must be called after the rollback, outside write_transaction()")
    with write_transaction():
        return add_entry(principal, verb, target, outcome="refused", reason=reason, acting_as=acting_as)


def digest(state: object) -> str:
    """Return the SHA-256 of a state's compact JSON, for `before` and `after`."""
    return hashlib.sha256((canonical(state) if state else "").encode()).hexdigest()


def last(verb: str, target: str) -> AuditEntry | None:
    """Return the last entry with this verb and target, to tell the loser of a race; None without one."""
    return AuditEntry.objects.filter(verb=verb, target=target, outcome="done").order_by("-seq").first()


def link(prev: str, entry: AuditEntry) -> str:
    """Return the hash that this entry must have after `prev`: SHA-256 of its fields joined by NUL, lower-case hex."""
    parts = [prev, str(entry.seq), str(entry.at)]
    if entry.digest:
        parts = ["switchboard/2 audit", *parts, entry.verb, entry.before, entry.after, entry.outcome, entry.digest]
    else:
        parts += [entry.principal, entry.acting_as, entry.verb, entry.target, entry.before, entry.after]
        parts += [entry.reason, entry.outcome, entry.correlation]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def personal_digest(salt: bytes, entry: AuditEntry) -> str:
    """Return the SHA-256 of a salt and the personal fields of an entry as compact JSON, lower-case hex."""
    personal = (entry.principal, entry.acting_as, entry.target, entry.reason, entry.correlation)
    text = json.dumps(personal, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(salt + text.encode("utf-8", "replace")).hexdigest()


def erased_digest(entry: AuditEntry) -> str:
    """Return the digest of an erased entry that an `erase_entries` names: over its number and what is left of it."""
    return personal_digest(f"switchboard/2 erased\0{entry.seq}\0".encode(), entry)


class ChainCheck(NamedTuple):
    """The position of a walk along the chain, and the head when it began, where it ends."""

    seq: int
    hash: str
    head: int
    head_hash: str
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """The first bad entry: what is wrong, and, for a hash, the expected and the stored one."""

    seq: int
    why: str
    expected: str = ""
    actual: str = ""


def begin() -> ChainCheck:
    """Start a walk at the first entry."""
    head = _head()
    return ChainCheck(0, FIRST, head.seq, head.hash)


def check(walk: ChainCheck, most: int) -> tuple[ChainCheck, Fault | None]:
    """Continue a walk over at most `most` entries; stop at the first bad one. In pages, because one long read would
    delay WAL checkpoints and other requests."""
    seq, prev = walk.seq, walk.hash
    page = list(AuditEntry.objects.filter(seq__gt=seq, seq__lte=walk.head).order_by("seq")[:most])
    named = _named_erased(page)
    for entry in page:
        seq += 1
        if fault := _fault(seq, prev, entry) or _fault_of_digest(entry, named):
            return walk._replace(seq=seq - 1, hash=prev), fault
        prev = entry.hash
    is_over = len(page) < most or seq == walk.head
    walked = walk._replace(seq=seq, hash=prev, is_over=is_over)
    return walked, _fault_of_end(walked) if is_over else None


def verify() -> ChainReport:
    """Verify the whole chain up to the head it had at the start."""
    walk, fault = check(begin(), PAGE)
    while not walk.is_over and fault is None:
        walk, fault = check(walk, PAGE)
    if fault is None:
        return ChainReport(walk.seq, ok=True)
    return ChainReport(fault.seq - 1, ok=False, first_bad=f"audit entry {fault.seq}", why=fault.why)


def _fault(seq: int, prev: str, entry: AuditEntry) -> Fault | None:
    if entry.seq != seq:
        return Fault(seq, "missing")
    why = "changed after it was written: the stored hash does not match the computed one"
    if entry.prev_hash != prev:
        return Fault(seq, why, expected=prev, actual=entry.prev_hash)
    computed = link(prev, entry)
    return None if computed == entry.hash else Fault(seq, why, expected=computed, actual=entry.hash)


def _fault_of_digest(entry: AuditEntry, named: Mapping[int, set[str]]) -> Fault | None:
    """Check the fields that the hash covers only through a digest."""
    if not entry.digest:
        return None if entry.salt is None else Fault(entry.seq, "changed after it was written: it has a salt")
    if entry.salt is None:
        if erased_digest(entry) in named.get(entry.seq, ()):
            return None
        return Fault(entry.seq, "text is missing, and no later entry records its erasure")
    computed = personal_digest(bytes(entry.salt), entry)
    if len(entry.salt) == hash_chain.SALT and computed == entry.digest:
        return None
    why = "changed after it was written: its person, target, reason or context does not match its digest"
    return Fault(entry.seq, why, expected=entry.digest, actual=computed)


def _named_erased(page: Iterable[AuditEntry]) -> Mapping[int, set[str]]:
    """Return the digests that later entries name, for each erased entry of a page."""
    named: dict[int, set[str]] = {entry.seq: set() for entry in page if entry.digest and entry.salt is None}
    if named:
        later = AuditEntry.objects.filter(verb=ERASE, outcome="done", seq__gt=min(named)).order_by("seq")
        for seq, correlation in later.values_list("seq", "correlation").iterator(chunk_size=500):
            for erased, digest_ in erased_of(correlation):
                if erased < seq and erased in named:
                    named[erased].add(digest_)
    return named


def erased_of(correlation: str) -> list[tuple[int, str]]:
    """Return the entries that an `erase_entries` names, each with the digest of what is left of it."""
    try:
        return [(int(seq), str(digest_)) for seq, digest_ in json.loads(correlation)["entries"].items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _fault_of_end(walk: ChainCheck) -> Fault | None:
    if walk.seq != walk.head:
        return Fault(walk.seq + 1, f"missing: the head counts {walk.head} entries")
    if walk.hash != walk.head_hash:
        return Fault(walk.seq, "the audit head has a different hash", expected=walk.hash, actual=walk.head_hash)
    # The entries first, the head after: a head only grows, in the transaction that adds the entry.
    last_seq = AuditEntry.objects.aggregate(last=Max("seq"))["last"] or 0
    head = _head().seq
    return Fault(head + 1, f"after the audit head, which is {head}") if last_seq > head else None


def _chained(entry: AuditEntry) -> AuditEntry:
    with connection.cursor() as cursor:
        head_seq, entry.prev_hash = _locked_head(cursor)
        entry.seq = head_seq + 1
        entry.salt = os.urandom(hash_chain.SALT)
        entry.digest = personal_digest(entry.salt, entry)
        entry.hash = link(entry.prev_hash, entry)
        entry.save(force_insert=True)
        cursor.execute(_MOVE_HEAD, [entry.seq, entry.hash])
    _note_time(entry)
    transaction.on_commit(commit_listeners.notify_audited, robust=True)  # entered is entered, whoever listens
    return entry


def _locked_head(cursor: CursorWrapper) -> tuple[int, str]:
    """Lock the head, which the first entry creates; return its seq and hash."""
    cursor.execute(f"{_READ_HEAD}{' FOR UPDATE' * (connection.vendor == 'postgresql')}")
    if (row := cursor.fetchone()) is None:
        head, _ = AuditHead.objects.select_for_update().get_or_create(id=1, defaults={"hash": FIRST})
        row = head.seq, head.hash
    return row[0], row[1]


def _note_time(entry: AuditEntry) -> None:
    """Widen the time range of the entry's span, under the head's lock."""
    span = entry.seq >> AuditSpan.BITS
    with connection.cursor() as cursor:
        cursor.execute(_WIDEN_SPAN, [entry.at, entry.at, entry.at, entry.at, span])
        is_new = cursor.rowcount == 0
    if is_new:
        AuditSpan.objects.create(span=span, earliest=entry.at, latest=entry.at)


def _head() -> AuditHead:
    return AuditHead.objects.filter(id=1).first() or AuditHead(hash=FIRST)


def _fit(text: str, limit: int) -> str:
    """Replace what a column or the chain cannot hold, too many characters as well."""
    clean = _clean(text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def _clean(text: str) -> str:
    """Replace NUL and lone surrogates."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
