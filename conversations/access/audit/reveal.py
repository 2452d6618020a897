"""Reveal what the audit log masks to readers who may see it; each reveal is audited."""

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import NotFound
from conversations.models import AuditEntry

VERB = "reveal"


def reveal(by: Who, seq: int) -> None:
    """Audit that someone reveals an entry, before it is shown. Raises NotFound, NotAllowed."""
    target = f"audit:{seq}"
    with audited_action(by, VERB, target, right="reveal") as principal:
        if not AuditEntry.objects.filter(seq=seq).exists():
            raise NotFound(f"the audit log has no entry {seq:,}")
        chain.add_entry(principal, VERB, target)
