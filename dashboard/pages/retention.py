"""Legal holds and retention rules, for admins: what must be kept, and what is removed after a time."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.core import hidden_characters
from conversations.core.errors import Invalid, SwitchboardError
from conversations.core.micros import to_datetime
from conversations.core.url_converters import row_number
from conversations.models import Agent, LegalHold, RetentionRule
from conversations.redaction import expiry, legal_holds, requests, retention_clock, retention_job, retention_rules
from conversations.redaction.retention_rules import RetentionTerms
from dashboard.pages import form_error
from dashboard.require_permission import require_permission

OF_RULE = ("days", "kind", "team", "conversation")
OF_HOLD = ("held", "regulated")
ENTERED = (*OF_RULE, *OF_HOLD, "reason")
MAX_TEAMS = 200


@require_permission("redact")
@require_http_methods(["GET", "HEAD", "POST"])
def retention(request: HttpRequest) -> HttpResponse:
    """List rules and holds; `?dry_run=NUMBER` counts what a rule would remove now. A POST sets a rule, or requests a
    second person's confirmation."""
    if request.method != "POST":
        return _draw(request, entered={})
    entered = {name: request.POST.get(name, "").strip()[:2000] for name in (*OF_RULE, "reason")}
    try:
        days = entered["days"]
        if not (days.isdecimal() and len(days) < 9):
            raise Invalid("must be a whole number", field="days")
        terms = RetentionTerms(int(days), entered["kind"], entered["team"], entered["conversation"])
        made = requests.submit_rule(request.user, terms, entered["reason"])
    except SwitchboardError as error:
        return _draw(request, error, entered=entered)
    return _back("set" if isinstance(made, RetentionRule) else "requested")


@require_permission("redact")
@require_POST
def removals(request: HttpRequest) -> HttpResponse:
    """Remove a rule."""
    try:
        retention_rules.remove_rule(request.user, row_number(request.POST.get("rule", "")))
    except SwitchboardError as error:
        return _draw(request, error, entered={})
    return _back("removed")


@require_permission("redact")
@require_POST
def clock(request: HttpRequest) -> HttpResponse:
    """Confirm that the clock is right, though it has jumped ahead."""
    retention_clock.confirm(request.user)
    return _back("confirmed")


@require_permission("hold")
@require_POST
def holds(request: HttpRequest) -> HttpResponse:
    """Place a hold."""
    entered = {name: request.POST.get(name, "").strip()[:2000] for name in (*OF_HOLD, "reason")}
    try:
        legal_holds.place(request.user, entered["held"], entered["reason"], is_regulated=bool(entered["regulated"]))
    except SwitchboardError as error:
        return _draw(request, error, entered=entered)
    return _back("held")


@require_permission("hold")
@require_POST
def releases(request: HttpRequest) -> HttpResponse:
    """Release a hold."""
    try:
        legal_holds.release(request.user, row_number(request.POST.get("hold", "")), request.POST.get("reason", ""))
    except SwitchboardError as error:
        return _draw(request, error, entered={})
    return _back("released")


def _back(done: str) -> HttpResponse:
    return HttpResponseRedirect(reverse("retention", query={"done": done}))


def _draw(request: HttpRequest, error: SwitchboardError | None = None, *, entered: dict[str, str]) -> HttpResponse:
    teams = Agent.objects.exclude(team="").order_by("team").values_list("team", flat=True).distinct()[:MAX_TEAMS]
    last = retention_job.last_run()
    return form_error.draw(
        request,
        "retention.html",
        error,
        entered=entered,
        fields=ENTERED,
        rules=[_rule(rule) for rule in retention_rules.rules()],
        holds=[_hold(hold) for hold in legal_holds.in_force()],
        dry_run=_dry_run(request) if error is None else None,
        teams=[team for team in teams if hidden_characters.is_clean(team)],
        clock_jump=retention_clock.jump(),
        ran_at=to_datetime(last) if last else None,
    )


def _dry_run(request: HttpRequest) -> dict[str, Any] | None:
    rule = retention_rules.rules().filter(pk=row_number(request.GET.get("dry_run", ""))).first()
    if rule is None:
        return None
    kinds, held = expiry.preview(retention_rules.selector(rule))
    return {"rule": _rule(rule), "kinds": dict(sorted(kinds.items())), "events": kinds.total(), "held": held}


def _rule(rule: RetentionRule) -> dict[str, Any]:
    texts = {name: hidden_characters.spelled_out(getattr(rule, name)) for name in ("kind", "team", "reason")}
    return texts | {
        "id": rule.pk,
        "days": rule.days,
        "conversation": hidden_characters.spelled_out(rule.conversation),
        "by": hidden_characters.spelled_out(rule.made_by.removeprefix("user:")),
        "at": to_datetime(rule.made_at),
        "ran_at": to_datetime(rule.ran_at) if rule.ran_at else None,
        "redacted": rule.redacted,
        "held": rule.held,
    }


def _hold(hold: LegalHold) -> dict[str, Any]:
    return {
        "id": hold.pk,
        "conversation": hold.conversation.key if hold.conversation else "",
        "name": hidden_characters.spelled_out(hold.conversation.key) if hold.conversation else "",
        "is_regulated": hold.is_regulated,
        "reason": hidden_characters.spelled_out(hold.reason),
        "by": hidden_characters.spelled_out(hold.placed_by.removeprefix("user:")),
        "at": to_datetime(hold.placed_at),
    }
