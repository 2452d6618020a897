"""Legal holds: an admin keeps a conversation, or all of them, as they are, with a reason. A hold beats redaction and
expiry; one of class `regulated` is never released. Called by the command `hold` and by whoever takes words out."""

import time
from collections.abc import Collection

from django.db.models import Q
from django.db.models.query import QuerySet

from conversations.access.action_context import audited_action, find_conversation, required_reason
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, NotFound
from conversations.models import LegalHold

MAX_REASON = 500
EVERYTHING = "*"


def place(by: Who, conversation: str, reason: str, *, is_regulated: bool = False) -> LegalHold:
    """Hold a conversation, or with `*` every one. Raises Invalid without a reason, NotFound."""
    reason, target = checked_reason(reason), _target(conversation)
    with audited_action(by, "hold", target, right="hold") as principal:
        row = None if conversation == EVERYTHING else find_conversation(conversation)
        hold = LegalHold.objects.create(
            conversation=row,
            is_regulated=is_regulated,
            reason=reason,
            placed_by=str(principal),
            placed_at=time.time_ns() // 1000,
        )
        chain.add_entry(
            principal, "hold", target, reason=reason, correlation={"hold": hold.pk, "regulated": is_regulated}
        )
    return hold


def release(by: Who, number: int, reason: str) -> None:
    """End a hold. Raises NotFound, Conflict for one that is released or of class `regulated`."""
    reason = checked_reason(reason)
    with audited_action(by, "release_hold", f"hold:{number}", right="hold") as principal:
        hold = LegalHold.objects.select_related("conversation").filter(pk=number).first()
        if hold is None:
            raise NotFound(f"there is no hold {number}")
        if hold.is_regulated:
            raise Conflict(f"hold {number} is of class regulated and can never be released")
        now = {"released_at": time.time_ns() // 1000, "released_by": str(principal)}
        if not LegalHold.objects.filter(pk=number, released_at=None).update(**now):
            raise Conflict(f"hold {number} was already released by {hold.released_by}")
        facts = {"of": target_of(hold)}
        chain.add_entry(principal, "release_hold", f"hold:{number}", reason=reason, correlation=facts)


def target_of(hold: LegalHold) -> str:
    """Return what a hold is on, as the audit log has it."""
    return _target(hold.conversation.key if hold.conversation else EVERYTHING)


def in_force() -> QuerySet[LegalHold]:
    """Return the holds that were not released, oldest first."""
    return LegalHold.objects.select_related("conversation").filter(released_at=None).order_by("id")


def require_none(conversations: Collection[int]) -> None:
    """Raise Conflict where one of these conversations is held. Call it inside the action's transaction, which holds
    apart from those that place and release."""
    hold = in_force().filter(Q(conversation=None) | Q(conversation__in=conversations)).first()
    if hold is None:
        return
    what = "every conversation" if hold.conversation is None else f"conversation {hold.conversation.key!r}"
    kind = "of class regulated" if hold.is_regulated else "on legal hold"
    raise Conflict(f"{what} is {kind} ({hold.placed_by}: {hold.reason})", code="held")


def _target(conversation: str) -> str:
    return "record" if conversation == EVERYTHING else f"conversation:{conversation}"


def checked_reason(reason: str) -> str:
    """Return the reason as it is stored. Raises Invalid for none, or one that is too long."""
    return required_reason(reason, MAX_REASON)
