"""The audit entries of an evidence bundle, and what proves each of them: its links up to the next signed leaf.

A link shows when an entry was made, what was done and with what outcome, and the digest of all else in it: of entries
about others no word is in the bundle.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

from django.db.models.query import QuerySet

from conversations.access.audit import entry_facts
from conversations.core.bounded_groups import blocks
from conversations.core.secret_masking import mask, mask_json
from conversations.evidence import tree
from conversations.models import Approval, AuditEntry, Conversation, TreeLeaf

PLAIN = ("seq", "at", "verb", "outcome", "before", "after", "digest", "prev_hash", "hash")
PERSONAL = ("principal", "acting_as", "target", "reason", "correlation")
LINK = ("seq", "at", "verb", "before", "after", "outcome", "digest", "hash")
BATCH = 500

Conversations = QuerySet[Conversation]


def entries(conversations: Conversations) -> Iterator[dict[str, Any]]:
    """Read the entries about these conversations and their approvals. Where the audit page would mask something of one,
    it is masked here, and there is no salt to check its words by."""
    for targets in _targets(conversations):
        rows = AuditEntry.objects.filter(target__in=targets).order_by("seq")
        for entry in rows.iterator(chunk_size=BATCH):
            yield {name: getattr(entry, name) for name in PLAIN} | _opened(entry)


def links(conversations: Conversations, size: int) -> Iterator[dict[str, Any]]:
    """Return, for each leaf of the audit log in the tree of this size that covers an entry of the bundle, the links
    from the first such entry to it, and the path from it to the root. Entries of format 1 have none."""
    numbers = sorted(_numbers(conversations))
    leaves = TreeLeaf.objects.filter(chain=tree.AUDIT, index__lt=size).order_by("seq")
    done = 0
    for number in numbers:
        leaf = leaves.filter(seq__gte=number).first() if number > done else None
        if leaf is None:
            continue
        done = leaf.seq
        between = AuditEntry.objects.filter(seq__gte=number, seq__lte=leaf.seq)
        if between.filter(digest="").exists():
            continue
        first = AuditEntry.objects.get(seq=number)
        path = [base64.b64encode(hash_).decode() for hash_ in tree.inclusion(leaf.index, size)]
        rows = between.order_by("seq").values_list(*LINK)
        yield {"index": leaf.index, "path": path, "prev": first.prev_hash, "links": list(rows.iterator())}


def _opened(entry: AuditEntry) -> dict[str, Any]:
    facts = entry_facts.parse(entry.correlation)
    reason, masked = mask(entry.reason), mask_json(facts)
    is_masked = (reason, masked) != (entry.reason, facts)
    words = {name: getattr(entry, name) for name in PERSONAL} | {"reason": reason}
    if is_masked:
        words["correlation"] = json.dumps(masked, ensure_ascii=False)
    salt = None if is_masked or entry.salt is None else bytes(entry.salt).hex()
    return words | {"salt": salt, "is_masked": is_masked}


def _targets(conversations: Conversations) -> Iterator[list[str]]:
    targets = [f"conversation:{key}" for key in conversations.values_list("key", flat=True)]
    approval_ids = Approval.objects.filter(conversation__in=conversations).values_list("id", flat=True)
    targets += [f"approval:{id_}" for id_ in approval_ids]
    yield from blocks(targets, BATCH)


def _numbers(conversations: Conversations) -> Iterator[int]:
    for targets in _targets(conversations):
        yield from AuditEntry.objects.filter(target__in=targets).values_list("seq", flat=True)
