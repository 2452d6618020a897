"""The page of auto-approval rules: what is approved without a request, who made each rule, what it approved. Revokes
rules."""

import json
from datetime import UTC, datetime, timedelta

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations.core import hidden_characters
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.micros import to_micros
from conversations.events import epoch
from conversations.runs.approvals import auto_approval_edit, auto_approval_rules, auto_approval_view, inbox
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from conversations.runs.policy.file_format import seconds_of
from dashboard.pages.base_context import render_page
from dashboard.require_permission import require_permission

VIEWS = {"": ("Active", "live"), "ended": ("Ended", "ended")}
PAGE = 50  # rules


@require_safe
@require_permission("view")
def rules(request: HttpRequest) -> HttpResponse:
    """List rules, newest first: those in force, or with `?view=ended` the others; `?rule=` selects one."""
    return _draw(request)


@require_POST
@require_permission("decide")
def revocations(request: HttpRequest) -> HttpResponse:
    """Revoke a rule."""
    try:
        auto_approval_edit.revoke_rule(
            request.user, request.POST.get("rule", ""), reason=request.POST.get("reason", "")[:2000]
        )
    except (Conflict, NotFound) as error:
        return _draw(request, hidden_characters.spelled_out(error.sentence), status=error.status)
    return HttpResponseRedirect(reverse("approval-rules", query={"done": "revoked"}))


def scope_of(request: HttpRequest, approval_request: inbox.ApprovalCard) -> AutoApprovalScope:
    """Read the scope of a new rule from an approval request's form. Raises Invalid naming the field."""
    posted = request.POST
    uses, lasts = posted.get("uses", "").strip(), posted.get("lasts", "")
    if uses and not (uses.isascii() and uses.isdigit() and len(uses) < 10):
        raise Invalid("must be a whole number or empty", field="uses")
    try:
        seconds = seconds_of(lasts)
    except Invalid as error:
        raise Invalid(error.message, field="until") from None
    until = (
        datetime.now(UTC) + timedelta(seconds=min(seconds, 2 * auto_approval_edit.MAX_DURATION)) if seconds else None
    )
    ticked, arguments = posted.getlist("same"), auto_approval_rules.call_of(approval_request.request).arguments or {}
    return AutoApprovalScope(
        is_exact=posted.get("match", "exact") == "exact",
        arguments={name: value for n, (name, value) in enumerate(arguments.items()) if str(n) in ticked},
        any_agent=posted.get("whose") == "any",
        uses=int(uses) if uses else None,
        until=to_micros(until) if until else None,
    )


def choices(approval_request: inbox.ApprovalCard) -> list[dict[str, str]] | None:
    """Return the arguments whose values a rule can require, each as its name and its value on one line; None if no rule
    can cover this request."""
    arguments = auto_approval_rules.call_of(approval_request.request).arguments
    if arguments is None:
        return None
    return [
        {
            "shown": hidden_characters.spelled_out(name),
            "value": hidden_characters.spelled_out(json.dumps(value, ensure_ascii=False))[:120],
        }
        for name, value in arguments.items()
    ]


def _draw(request: HttpRequest, error: str = "", *, status: int = 200) -> HttpResponse:
    view = request.GET.get("view", "")
    if view not in VIEWS:
        raise NotFound("There is no such list.")
    rule, before = request.GET.get("rule", ""), request.GET.get("before", "")
    rows, cursor = auto_approval_view.page(state=VIEWS[view][1], rule=rule, before=before, limit=PAGE)
    params = {name: value for name, value in (("view", view), ("before", cursor)) if value}
    return render_page(
        request, "auto_approvals.html", status=status, epoch=epoch.current(), rules=rows, view=view, views=VIEWS,
        error=error, one=bool(rule), older=reverse("approval-rules", query=params) if cursor else "",
        done=request.GET.get("done", ""),
    )  # fmt: skip
