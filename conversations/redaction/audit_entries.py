"""What is personal in entries of the audit log, erased: reasons, addresses, words of search and of names.

Who did what to what, with what outcome, stays, and so do ids and figures, which `verify` and pages go by. The chain
covers what goes by salted digests; a later entry names each, with the digest of what is left.
"""

import hashlib
import json
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress

from django.db.models import Q
from django.db.models.query import QuerySet

from conversations.access.action_context import audited_action
from conversations.access.audit import chain, entry_facts
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.json_values import canonical
from conversations.core.principals import SYSTEM, Principal
from conversations.models import AuditEntry, Conversation
from conversations.redaction import legal_holds, redact
from conversations.redaction.call_field import SHORTEST, spellings, spellings_of_word
from conversations.redaction.id_forms import ErasedId

TARGET = "audit"
MAX_ENTRIES = 2_000  # at once
PAGE = 30  # that one entry of the log can name
# Facts of an entry that are ids, figures or words of the program; all others go.
KEPT = frozenset((
    "request", "conversation", "run", "call", "seq", "seqs", "events", "entries", "field", "format", "decision", "hold",
    "regulated", "rule", "roles", "role", "agent", "what", "target", "until", "was", "policies", "amount", "days",
    "kind", "team", "how", "delivery", "conversations", "sha256", "made_at", "epoch", "tree", "leaves", "root", "key",
))  # fmt: skip


def erase(by: Who, seqs: Collection[int], reason: str) -> int:
    """Erase what is personal in these entries; return of how many. Raises Invalid, NotFound, NotAllowed, and Conflict
    where a hold is in force or nothing is left to erase."""
    reason = legal_holds.checked_reason(reason)
    if not seqs or len(seqs) > MAX_ENTRIES:
        raise Invalid(f"must be 1 to {MAX_ENTRIES} entries; got {len(seqs)}", field="entries")
    with audited_action(by, chain.ERASE, TARGET, right="redact") as principal:
        if missing := set(seqs) - set(AuditEntry.objects.filter(seq__in=seqs).values_list("seq", flat=True)):
            raise NotFound(f"the audit log has no entry {min(missing):,}")
        entries = list(erasable().filter(seq__in=seqs).order_by("seq"))
        if not entries:
            raise Conflict(
                "these entries are already erased, or are of an older format that cannot be erased", code="redacted"
            )
        legal_holds.require_none(_conversations_of(entries))
        _erase(principal, entries, reason, f"entries:{secrets.token_hex(16)}")
    return len(entries)


def erase_again(seqs: Collection[int], reason: str, mark: str) -> int:
    """Erase what the journal lists, in a record that is older than it; inside the transaction. Return how many."""
    entries = list(erasable().filter(seq__in=seqs).order_by("seq"))
    _erase(SYSTEM, entries, reason, mark)
    return len(entries)


def erasable() -> QuerySet[AuditEntry]:
    """Return the entries that have something to erase: of format 2, not erased, not naming erased ones. One that lost
    the id of a conversation has its words still."""
    is_erased = Q(salt=None, reason__in=("", chain.ERASED)) & ~Q(correlation__contains='"address"')
    return AuditEntry.objects.exclude(digest="").exclude(is_erased).exclude(verb=chain.ERASE)


def with_erasable(seqs: Collection[int]) -> set[int]:
    """Return those of the entries that would lose something if they were erased."""
    entries = erasable().filter(seq__in=seqs)
    return {entry.seq for entry in entries if left_of(entry) != (entry.reason, entry.correlation)}


def without_held(seqs: Collection[int]) -> list[int]:
    """Return those of the entries that no hold keeps."""
    free = []
    for entry in AuditEntry.objects.filter(seq__in=seqs).order_by("seq"):
        with suppress(Conflict):
            legal_holds.require_none(_conversations_of([entry]))
            free.append(entry.seq)
    return free


def naming(person: str, words: Sequence[str]) -> list[int]:
    """Return the entries whose reason or facts have one of these words (in any case), and those of a person
    that have the address from which they came. Raises Invalid where it is too much at once."""
    condition = Q()
    for word in words:
        if len(word) >= SHORTEST:
            for form in spellings_of_word(word):
                condition |= Q(reason__icontains=form) | Q(correlation__icontains=form)
    if person:
        names = [f"user:{form}" for form in spellings(person)]
        condition |= Q(principal__in=names, correlation__contains='"address"')
    if not condition:
        return []
    entries = list(erasable().filter(condition).order_by("seq")[: MAX_ENTRIES + 1])
    if len(entries) > MAX_ENTRIES:
        raise Invalid(f"more than {MAX_ENTRIES:,} audit entries match: use rarer words", field="words")
    return [entry.seq for entry in entries if left_of(entry) != (entry.reason, entry.correlation)]


def left_of(entry: AuditEntry) -> tuple[str, str]:
    """Return the reason and the facts that stand there once an entry is erased."""
    left = {name: value for name, value in entry_facts.parse(entry.correlation).items() if name in KEPT}
    return (chain.ERASED if entry.reason else "", canonical(left) if left else "")


def replace_id(erased: ErasedId, by: Principal, reason: str) -> None:
    """Put the new id in place of an erased one in all entries that can be changed, inside the action's transaction."""
    _store_erased(by, [entry for entry in without_id(erased) if entry.digest], reason)


def without_id(erased: ErasedId) -> list[AuditEntry]:
    """Return the entries about a conversation as they are without its id, not stored; those of an older format, without
    a digest, keep it. Entries about others keep the words that people wrote."""
    changed = []
    rows = AuditEntry.objects.filter(erased.held_by("target", "reason", "correlation")).exclude(verb=chain.ERASE)
    for entry in rows.order_by("seq").iterator(chunk_size=500):
        was = (entry.target, entry.reason, entry.correlation)
        target, new_target = f"conversation:{erased.old}", f"conversation:{erased.new}"
        facts = entry_facts.parse(entry.correlation)
        is_about = entry.target == target or facts.get("conversation") == erased.old
        is_cut = facts.keys() == {"text"}  # nobody wrote it: an older entry's JSON, cut in the middle
        left = erased.in_fields(facts, words=is_about or is_cut, structural=KEPT)
        left |= {name: new_target for name, value in facts.items() if value == target}
        if isinstance(query := facts.get("query"), str) and not is_about:
            left["query"] = erased.in_query(query)
        if isinstance(events := facts.get("events"), dict):
            left["events"] = {erased.new if key == erased.old else key: value for key, value in events.items()}
        entry.target = new_target if entry.target == target else entry.target
        entry.reason = erased.in_words(entry.reason) if is_about else entry.reason
        entry.correlation = entry.correlation if left == facts else canonical(left)
        if was != (entry.target, entry.reason, entry.correlation):
            changed.append(entry)
    return changed


def mark_of_entries(seqs: Sequence[int]) -> str:
    """Return the SHA-256 over the hashes of entries: that they are those which were erased elsewhere."""
    hashes = AuditEntry.objects.filter(seq__in=seqs).order_by("seq").values_list("hash", flat=True)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _erase(by: Principal, entries: Sequence[AuditEntry], reason: str, mark: str) -> None:
    for entry in entries:
        entry.reason, entry.correlation = left_of(entry)
    _store_erased(by, entries, reason)
    redact.note(mark, by, reason, seqs=json.dumps([entry.seq for entry in entries]))


def _store_erased(by: Principal, entries: Sequence[AuditEntry], reason: str) -> None:
    """Store what is left of entries, and enter the digests that name it."""
    for at in range(0, len(entries), PAGE):
        named = {}
        for entry in entries[at : at + PAGE]:
            entry.salt = None
            entry.save(update_fields=["target", "reason", "correlation", "salt"])
            named[str(entry.seq)] = chain.erased_digest(entry)
        chain.add_entry(by, chain.ERASE, TARGET, reason=reason, correlation={"entries": named})


def _conversations_of(entries: Sequence[AuditEntry]) -> list[int]:
    """Return the conversations that entries are about: a hold on one keeps what the log says of it, too."""
    keys = set()
    for entry in entries:
        kind, _, name = entry.target.partition(":")
        keys.add(name if kind == "conversation" else "")
        facts = entry_facts.parse(entry.correlation)
        keys.add(str(facts.get("conversation", "")))
    return list(Conversation.objects.filter(key__in=keys - {""}).values_list("pk", flat=True))
