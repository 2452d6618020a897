"""The rows of the `approvals` topic: approval requests, the latest change first. Called by `realtime.state_topics`."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from conversations.models import Approval
from conversations.runs.approvals import inbox, pending_counts

VERSION = Coalesce("decided_seq", "escalated_seq", "asked_seq")
ROWS = 100  # of one frame of changes
MAX_DECIDED = 3  # frames of requests that are decided at once


class _Source:
    """The rows of the `approvals` topic."""

    def newest_rows(self, limit: int) -> list[dict[str, Any]]:
        """Return the requests that were asked, decided or escalated last, whatever their outcome."""
        return _drawn_rows([key for key, _, _ in _changed_last(limit)[:limit]])

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return what is new in these conversations, at most `ROWS` of it; most events there concern no request."""
        there = set(conversations)
        changed = [key for key, of, version in _changed_last(ROWS) if of in there and versions.get(key) != version]
        return _drawn_rows(changed[:ROWS])

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        """Return the versions of the requests that changed last, by id."""
        return {key: (of, version) for key, of, version in _changed_last(limit)}

    def waiting_counts(self) -> dict[str, Any]:
        """Count the requests that can still be decided."""
        return pending_counts.pending_counts()


SOURCE = _Source()


def _visible() -> QuerySet[Approval]:
    return Approval.objects.filter(conversation__is_staged=False)


def _changed_last(limit: int) -> list[tuple[str, str, int]]:
    """Return id, conversation and version of what was asked or decided last, latest first, then of what is escalated. A
    change is there whenever it comes, however old its request is, unless very many come at once."""
    names = ("id", "conversation__key", VERSION, Coalesce("decided_at", "asked_at"))
    there = _visible().values_list(*names)
    last = [
        *there.order_by("-id")[:limit],
        *there.filter(decided_at__isnull=False).order_by("-decided_at")[: limit * MAX_DECIDED],
    ]
    escalated = there.filter(status="pending").exclude(escalated_seq=None).order_by("-id")[:limit]
    changes = [*sorted(last, key=lambda row: row[3], reverse=True), *escalated]
    return [row[:3] for row in {row[0]: row for row in changes}.values()]


def _drawn_rows(ids: Sequence[str]) -> list[dict[str, Any]]:
    approvals = _visible().filter(id__in=ids).order_by("-id").select_related("conversation") if ids else []
    return [
        {
            "key": card.row.id, "version": card.version, "status": card.row.status, "conversation_id": card.key,
            "escalated": card.escalated, "html": str(inbox.drawn(card)),
        }
        for card in inbox.cards_of(list(approvals))
    ]  # fmt: skip
