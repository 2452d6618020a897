"""Compute the terms of an approval request: from the operators' rows that match the call, tightened by the settings.
Used by workers that create requests, the actions that decide them, and pages.

| term | rows | with the settings |
|---|---|---|
| deadline | the most specific row that has one | the shorter |
| what happens at the deadline | the most specific row that sets it | the stricter: reject > notify > wait |
| who is notified | that row's role | or else the settings' role |
| four eyes | any row | or |
| no auto-approval rule | any row | |

The deadline and what happens then are stored in `approval.requested` and do not change afterwards; four eyes and "no
auto-approval rule" are evaluated at the time of a decision.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q

from conversations.core.database_clock import database_now
from conversations.models import Approval
from conversations.runs.policy.evaluate import ENDS, OnExpiry, PolicyRule

EventFields = dict[str, object]


class ApprovalTerms(NamedTuple):
    """What applies to a request. `deadline_s` None: it may wait without limit."""

    deadline_s: float | None
    on_expiry: OnExpiry
    role: str
    four_eyes: bool
    no_always: bool

    def request_fields(self) -> EventFields:
        """Return the fields about the terms for an `approval.requested` that is created now."""
        if not self.deadline_s:
            return {}
        until = datetime.now(UTC) + timedelta(seconds=self.deadline_s)
        fields: EventFields = {"deadline": until.isoformat(timespec="milliseconds"), "on_expiry": self.on_expiry}
        return fields | ({"notify": self.role} if self.on_expiry == "notify" else {})


def of_call(rows: Iterable[PolicyRule]) -> ApprovalTerms:
    """Return the terms of a call; `rows` are those that match it, the most specific first."""
    config, about = settings.CONFIG, list(rows)
    limits = [config.approval_s or None, next((row.deadline_s for row in about if row.deadline_s), None)]
    ends = next((row for row in about if row.on_expiry), None)
    by_row: OnExpiry = (ends.on_expiry if ends is not None else "") or "wait"
    by_settings: OnExpiry = config.approval_expiry
    on_expiry = by_row if ENDS.index(by_row) >= ENDS.index(by_settings) else by_settings
    is_rows = ends is not None and by_row == on_expiry
    return ApprovalTerms(
        deadline_s=min((limit for limit in limits if limit is not None), default=None),
        on_expiry=on_expiry,
        role=(ends.notify if ends is not None and is_rows else "") or config.approval_role,
        four_eyes=config.four_eyes or any(row.four_eyes for row in about),
        no_always=any(row.no_always for row in about),
    )


def deadline_of(approval: Approval) -> int | None:
    """Return a request's deadline, in µs UTC: its own, else that of the settings; None if neither sets one."""
    if approval.deadline is not None:
        return approval.deadline
    limit_s = settings.CONFIG.approval_s
    return approval.asked_at + int(limit_s * 1e6) if limit_s else None


def past_deadline(now: int) -> Q:
    """Return the condition that a request's `deadline_of` is before `now`, in µs UTC."""
    limit_s = settings.CONFIG.approval_s
    by_settings = Q(deadline=None, asked_at__lt=now - int(limit_s * 1e6)) if limit_s else Q()
    return Q(deadline__lt=now) | by_settings


def expired_at(approval: Approval, request: dict[str, Any]) -> int | None:
    """Return the deadline that a request has passed and that ends it, in µs UTC, whether a worker has ended it yet or
    not; None if it can still be decided: an escalated one waits without limit, whatever the settings are now. `request`
    is the event that created it."""
    if approval.escalated_seq is not None:  # no worker ends it (`overdue_requests.handle_due`)
        return None
    deadline = deadline_of(approval)
    is_over = deadline is not None and deadline < database_now() and terms_of_request(request)[0] == "reject"
    return deadline if is_over else None


def terms_of_request(request: dict[str, Any]) -> tuple[OnExpiry, str]:
    """Return what happens at a request's deadline, from the event that created it, and the role to notify; from the
    settings if the event contains neither."""
    config = settings.CONFIG
    ends = next((end for end in ENDS if end == request.get("on_expiry")), config.approval_expiry)
    role = str(request.get("notify") or config.approval_role) if ends == "notify" else "approver"
    return ends, role[:20]
