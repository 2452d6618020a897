"""The page of always rules: what is approved without asking, by whose word, and what it approved; revoked here."""

import json
from datetime import UTC, datetime, timedelta

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from conversations import always, always_view, epoch, inbox
from conversations.actions import rules as actions
from conversations.actions.rules import Scope
from conversations.errors import Conflict, Invalid, NotFound
from conversations.fragments import hidden
from conversations.policy_form import seconds_of
from dashboard.pages.allowed import takes
from dashboard.pages.frame import page

VIEWS = {"": ("Counting", "live"), "ended": ("Ended", "ended")}
PAGE = 50  # rules


@require_safe
@takes("view")
def rules(request: HttpRequest) -> HttpResponse:
    """List rules, newest first: those that count, or `?view=ended`; `?rule=` one of them."""
    return _draw(request)


@require_POST
@takes("decide")
def revocations(request: HttpRequest) -> HttpResponse:
    """Revoke a rule."""
    try:
        actions.revoke_rule(request.user, request.POST.get("rule", ""), reason=request.POST.get("reason", "")[:2000])
    except (Conflict, NotFound) as error:
        return _draw(request, hidden.spell(error.message), status=error.status)
    return HttpResponseRedirect(f"{reverse('approval-rules')}?{urlencode({'done': 'revoked'})}")


def scope_of(request: HttpRequest, question: inbox.Question) -> Scope:
    """Read the scope that a question's form has. Raises Invalid naming the field."""
    posted = request.POST
    uses, lasts = posted.get("uses", "").strip(), posted.get("lasts", "")
    if uses and not (uses.isascii() and uses.isdigit() and len(uses) < 10):
        raise Invalid("expected a whole number, or nothing", field="uses")
    try:
        seconds = seconds_of(lasts)
    except Invalid as error:
        raise Invalid(error.message, field="until") from None
    until = datetime.now(UTC) + timedelta(seconds=min(seconds, 2 * actions.LONGEST)) if seconds else None
    ticked, arguments = posted.getlist("same"), always.call_of(question.told).arguments or {}
    return Scope(
        is_exact=posted.get("match", "exact") == "exact",
        arguments={name: value for n, (name, value) in enumerate(arguments.items()) if str(n) in ticked},
        any_agent=posted.get("whose") == "any",
        uses=int(uses) if uses else None,
        until=int(until.timestamp() * 1e6) if until else None,
    )


def choices(question: inbox.Question) -> list[dict[str, str]] | None:
    """Answer the arguments that a rule may ask to be the same: each name, and its value in a line. None: no rule can be
    about them."""
    arguments = always.call_of(question.told).arguments
    if arguments is None:
        return None
    return [
        {"shown": hidden.spell(name), "value": hidden.spell(json.dumps(value, ensure_ascii=False))[:120]}
        for name, value in arguments.items()
    ]


def _draw(request: HttpRequest, error: str = "", *, status: int = 200) -> HttpResponse:
    view = request.GET.get("view", "")
    if view not in VIEWS:
        raise NotFound("there is no such list")
    rule, before = request.GET.get("rule", ""), request.GET.get("before", "")
    found, cursor = always_view.page(state=VIEWS[view][1], rule=rule, before=before, limit=PAGE)
    told = {name: value for name, value in (("view", view), ("before", cursor)) if value}
    return page(
        request, "rules.html", status=status, epoch=epoch.current(), rules=found, view=view, views=VIEWS, error=error,
        one=bool(rule), older=f"?{urlencode(told)}" if cursor else "", done=request.GET.get("done", ""),
    )  # fmt: skip
