"""Redactions that take two people, where the operator says so: one asks, another confirms or declines.

Called by the page, the API and the command. Without that setting what is asked for is done at once.
"""

import time
from typing import NamedTuple

from django.conf import settings
from django.db.models.query import QuerySet

from conversations.access import permissions
from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.models import RedactionRequest
from conversations.redaction import legal_holds, scope
from conversations.redaction.scope import RedactionOutcome, RedactionScope

MAX_PENDING = 200


class Submitted(NamedTuple):
    """What became of it: done, or it waits for a second person."""

    outcome: RedactionOutcome | None
    request: RedactionRequest | None


def submit(by: Who, what: RedactionScope, reason: str) -> Submitted:
    """Redact, or ask a second person to confirm it. Raises Invalid, NotFound, NotAllowed and Conflict."""
    if not settings.CONFIG.redaction_four_eyes:
        return Submitted(scope.carry_out(by, what, reason), None)
    reason = legal_holds.checked_reason(reason)
    places = scope.preview(what)
    with audited_action(by, "request_redaction", what.target, right="redact") as principal:
        if not places and not scope.preview_entries(what):
            raise Invalid("there is nothing left to redact", field="events")
        if places and all(place.blocked for place in places):
            raise Conflict(places[0].blocked, code="held")
        if pending().count() >= MAX_PENDING:
            raise Conflict(
                f"{MAX_PENDING} requests already wait for a second person: decide on those first", code="too_many"
            )
        now = time.time_ns() // 1000
        made = RedactionRequest.objects.create(
            scope=what.as_json(), reason=reason, requested_by=str(principal), requested_at=now
        )
        chain.enter(principal, "request_redaction", what.target, reason=reason, correlation={"request": made.pk})
    return Submitted(None, made)


def pending() -> QuerySet[RedactionRequest]:
    """Return those that wait for a second person, oldest first."""
    return RedactionRequest.objects.filter(decided_at=None).order_by("id")


def confirm(by: Who, number: int) -> RedactionOutcome:
    """Redact what somebody else asked for. Raises NotFound, Conflict; NotAllowed for whoever asked.

    It is done before the request is closed: after a crash between the two it is confirmed once more, and does nothing
    more.
    """
    pending_request = _pending(number)
    what = RedactionScope.from_json(pending_request.scope)
    _require_another(by, pending_request, what)
    try:
        outcome = scope.carry_out(
            by, what, pending_request.reason, requested_by=pending_request.requested_by, request=number
        )
    except Conflict as error:
        if error.code != "redacted":
            raise
        outcome = RedactionOutcome((), ())
    pending_request.refresh_from_db()
    what = RedactionScope.from_json(pending_request.scope)  # without an id that is erased now
    if not outcome.refused:
        _close(by, pending_request, what, is_confirmed=True)
    return outcome


def decline(by: Who, number: int, reason: str = "") -> None:
    """Have it not done. Whoever asked for it may, too. Raises NotFound, Conflict."""
    pending_request = _pending(number)
    _close(by, pending_request, RedactionScope.from_json(pending_request.scope), is_confirmed=False, reason=reason)


def _pending(number: int) -> RedactionRequest:
    pending_request = RedactionRequest.objects.filter(pk=number).first()
    if pending_request is None:
        raise NotFound(f"there is no request {number}")
    if pending_request.decided_at is not None:
        done = "confirmed" if pending_request.is_confirmed else "declined"
        raise Conflict(f"{pending_request.decided_by} has {done} request {number}", code="decided")
    return pending_request


def _require_another(by: Who, pending_request: RedactionRequest, what: RedactionScope) -> None:
    with audited_action(by, "confirm_redaction", what.target, right="redact"):
        if str(permissions.principal_of(by)) == pending_request.requested_by:
            raise NotAllowed("a second person has to confirm this request, because you made it")


def _close(
    by: Who, pending_request: RedactionRequest, what: RedactionScope, *, is_confirmed: bool, reason: str = ""
) -> None:
    verb = "confirm_redaction" if is_confirmed else "decline_redaction"
    with audited_action(by, verb, what.target, right="redact") as principal:
        now = {"decided_by": str(principal), "decided_at": time.time_ns() // 1000, "is_confirmed": is_confirmed}
        if what.is_about_person:  # its words are what had to go
            now["scope"] = RedactionScope(words=("redacted",)).as_json()
        if not RedactionRequest.objects.filter(pk=pending_request.pk, decided_at=None).update(**now):
            raise Conflict(f"somebody else has already decided on request {pending_request.pk}", code="decided")
        chain.enter(
            principal,
            verb,
            what.target,
            reason=reason or pending_request.reason,
            correlation={"request": pending_request.pk},
        )
