"""Redactions and retention rules that take two people, where the operator says so: one asks, another confirms or
declines.

Called by the page, the API and the command. Without that setting what is asked for is done at once.
"""

import time
from typing import NamedTuple

from django.conf import settings
from django.db.models.query import QuerySet

from conversations.access import four_eyes, permissions
from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.models import RedactionRequest, RetentionRule
from conversations.redaction import legal_holds, retention_rules, scope
from conversations.redaction.retention_rules import RetentionTerms
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
        return Submitted(None, _request(principal, what, reason))


def submit_rule(by: Who, terms: RetentionTerms, reason: str) -> RetentionRule | RedactionRequest:
    """Set a retention rule, or ask a second person to confirm it, because it redacts without one. Raises like
    `retention_rules.set_rule`."""
    if not settings.CONFIG.redaction_four_eyes:
        return retention_rules.set_rule(by, reason=reason, **terms._asdict())
    reason = legal_holds.checked_reason(reason)
    terms = retention_rules.checked(terms)
    what = RedactionScope(**terms._asdict())
    with audited_action(by, "request_redaction", what.target, right="redact") as principal:
        retention_rules.require_free(terms)
        return _request(principal, what, reason)


def _request(principal: Principal, what: RedactionScope, reason: str) -> RedactionRequest:
    if pending().count() >= MAX_PENDING:
        raise Conflict(
            f"{MAX_PENDING} requests already wait for a second person: decide on those first", code="too_many"
        )
    now = time.time_ns() // 1000
    made = RedactionRequest.objects.create(
        scope=what.as_json(), reason=reason, requested_by=str(principal), requested_at=now
    )
    chain.add_entry(principal, "request_redaction", what.target, reason=reason, correlation={"request": made.pk})
    return made


def pending() -> QuerySet[RedactionRequest]:
    """Return those that wait for a second person, oldest first."""
    return RedactionRequest.objects.filter(decided_at=None).order_by("id")


def count_for(by: Who) -> int:
    """Return how many wait that somebody else asked for, where two people are needed."""
    if not settings.CONFIG.redaction_four_eyes:
        return 0
    principal = str(permissions.principal_of(by))
    requested = list(pending().values_list("requested_by", flat=True))
    behind = four_eyes.people_behind([principal, *requested]) if requested else {}
    return sum(behind[requester].isdisjoint(behind[principal]) for requester in requested)


def confirm(by: Who, number: int) -> RedactionOutcome:
    """Redact what somebody else asked for. Raises NotFound, Conflict; NotAllowed for whoever asked.

    The row says so first, so that nobody declines it meanwhile, and is closed at the end: after a crash between the two
    it is confirmed once more, by anybody, and what is left is done. What is refused can still be declined.
    """
    pending_request = _pending(number)
    what = RedactionScope.from_json(pending_request.scope)
    _begin(by, pending_request, what)
    try:
        outcome = _carry_out(by, what, pending_request)
    except Exception:
        _give_up(by, pending_request)
        raise
    pending_request.refresh_from_db()
    what = RedactionScope.from_json(pending_request.scope)  # without an id that is erased now
    if outcome.refused:
        _give_up(by, pending_request)
    else:
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
        raise _already_decided(pending_request)
    return pending_request


def _already_decided(pending_request: RedactionRequest) -> Conflict:
    """Return the refusal that names who was first."""
    pending_request.refresh_from_db()
    done = "confirmed" if pending_request.is_confirmed else "declined"
    rest = "" if pending_request.decided_at is not None else ", and it is not finished: confirm it to finish it"
    return Conflict(f"{pending_request.decided_by} has {done} request {pending_request.pk}{rest}", code="decided")


def _begin(by: Who, pending_request: RedactionRequest, what: RedactionScope) -> None:
    """Note who confirms it, if that is another person; `pending_request` keeps who had begun before a crash."""
    with audited_action(by, "confirm_redaction", what.target, right="redact") as principal:
        if four_eyes.is_same_person(str(principal), pending_request.requested_by):
            raise NotAllowed("a second person has to confirm this request, because you or a token of yours made it")
        begun = {"decided_by": str(principal), "is_confirmed": True}
        if not RedactionRequest.objects.filter(pk=pending_request.pk, decided_at=None).update(**begun):
            raise _already_decided(pending_request)


def _carry_out(by: Who, what: RedactionScope, pending_request: RedactionRequest) -> RedactionOutcome:
    facts = {"requested_by": pending_request.requested_by, "request": pending_request.pk}
    try:
        return scope.carry_out(by, what, pending_request.reason, **facts)
    except Conflict as error:
        if error.code != "redacted":
            raise
        return RedactionOutcome((), ())


def _give_up(by: Who, pending_request: RedactionRequest) -> None:
    """Have it wait for a second person again, or for somebody else who has begun and may be at it still."""
    me = str(permissions.principal_of(by))
    is_others = pending_request.is_confirmed and pending_request.decided_by != me
    before = {"decided_by": pending_request.decided_by, "is_confirmed": True}
    with write_transaction():
        begun = RedactionRequest.objects.filter(pk=pending_request.pk, decided_at=None, decided_by=me)
        begun.update(**(before if is_others else {"decided_by": "", "is_confirmed": None}))


def _close(
    by: Who, pending_request: RedactionRequest, what: RedactionScope, *, is_confirmed: bool, reason: str = ""
) -> None:
    verb = "confirm_redaction" if is_confirmed else "decline_redaction"
    with audited_action(by, verb, what.target, right="redact") as principal:
        now = {"decided_by": str(principal), "decided_at": time.time_ns() // 1000, "is_confirmed": is_confirmed}
        if what.is_about_person:  # its words are what had to go
            now["scope"] = RedactionScope(words=("redacted",)).as_json()
        waiting = RedactionRequest.objects.filter(pk=pending_request.pk, decided_at=None)
        if not (waiting if is_confirmed else waiting.filter(is_confirmed=None)).update(**now):
            raise _already_decided(pending_request)
        chain.add_entry(
            principal,
            verb,
            what.target,
            reason=reason or pending_request.reason,
            correlation={"request": pending_request.pk},
        )
