"""The rows of the `approvals` topic: approval requests, the latest change first. Called by `realtime.state_topics`."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import connection

from conversations.models import Approval
from conversations.runs.approvals import inbox, pending_counts

ROWS = 100  # of one frame of changes
MAX_DECIDED = 3  # frames of requests that are decided at once

# As text: while somebody follows, it is asked once a second, and Django needs 3 ms to write it. Each part walks an
# index from its end, whatever the number of requests. The conversation is looked up for each row: in a join, SQLite
# first reads all of them into a filter. `|| ''` keeps the planner from walking all pending requests by their ids.
_ROW = """SELECT a.id, (SELECT c.key FROM conversations_conversation c WHERE c.id=a.conversation_id),
 COALESCE(a.decided_seq, a.escalated_seq, a.asked_seq), COALESCE(a.decided_at, a.asked_at), {is_escalated}
 FROM conversations_approval a
 WHERE EXISTS (SELECT 1 FROM conversations_conversation c WHERE c.id=a.conversation_id AND NOT c.is_staged)"""
_NEW, _ESCALATED = _ROW.format(is_escalated=0), _ROW.format(is_escalated=1)
_CHANGED_SQL = f"""SELECT * FROM ({_NEW} ORDER BY a.id DESC LIMIT %s) asked
UNION ALL SELECT * FROM ({_NEW} AND a.decided_at IS NOT NULL ORDER BY a.decided_at DESC LIMIT %s) decided
UNION ALL SELECT * FROM ({_ESCALATED} AND a.status='pending' AND a.escalated_seq>0
 ORDER BY a.id || '' DESC LIMIT %s) escalated"""


class _Changed(NamedTuple):
    """A request that changed, or that is escalated: its id, conversation and version."""

    key: str
    conversation: str
    version: int
    is_escalated: bool


class _Source:
    """The rows of the `approvals` topic."""

    def newest_rows(self, limit: int) -> list[dict[str, Any]]:
        """Return the requests that were asked or decided last, whatever their outcome, and those that are escalated,
        however old they are."""
        changed = _changed_last(limit)
        return _drawn_rows([row.key for at, row in enumerate(changed) if at < limit or row.is_escalated])

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return what is new in these conversations, at most `ROWS` of it; most events there concern no request."""
        there = set(conversations)
        changed = [
            row.key for row in _changed_last(ROWS) if row.conversation in there and versions.get(row.key) != row.version
        ]
        return _drawn_rows(changed[:ROWS])

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        """Return the versions of the requests that changed last, by id."""
        return {row.key: (row.conversation, row.version) for row in _changed_last(limit)}

    def waiting_counts(self) -> dict[str, Any]:
        """Count the requests that can still be decided."""
        return pending_counts.pending_counts()


SOURCE = _Source()


def _changed_last(limit: int) -> list[_Changed]:
    """Return what was asked or decided last, latest first, then what is escalated, of which no time is known. A change
    is there whenever it comes, however old its request is, unless very many come at once."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED_SQL, [limit, limit * MAX_DECIDED, max(limit, inbox.MAX_ESCALATED)])
        rows = cursor.fetchall()
    last = sorted((row for row in rows if not row[4]), key=itemgetter(3), reverse=True)
    merged = {row[0]: row for row in [*last, *(row for row in rows if row[4])]}
    return [_Changed(key, of, version, bool(is_escalated)) for key, of, version, _, is_escalated in merged.values()]


def _drawn_rows(ids: Sequence[str]) -> list[dict[str, Any]]:
    if not ids:
        return []
    approvals = Approval.objects.filter(id__in=ids, conversation__is_staged=False).order_by("-id")
    return [
        {
            "key": card.row.id, "version": card.version, "status": card.row.status, "conversation_id": card.key,
            "escalated": card.escalated, "html": str(inbox.drawn(card)),
        }
        for card in inbox.cards_of(list(approvals.select_related("conversation")))
    ]  # fmt: skip
