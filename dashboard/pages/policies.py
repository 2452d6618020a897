"""The operators' policy, for the admin: rules about tools, each in words."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from conversations import policy, policy_view
from conversations.actions import policies as actions
from conversations.errors import NotAllowed, SwitchboardError
from conversations.fragments import hidden
from conversations.models.people import ROLES
from conversations.policy_form import FIELDS, row_of, seconds_of, time_of
from dashboard.pages.allowed import takes
from dashboard.pages.errors import status_of
from dashboard.pages.frame import page

ENTERED = (*FIELDS, "reason", "expected", "was", "was_agent", "was_tool")  # fields of the form
MOST = 200  # rows of a page; a search finds the others


@takes("policies")
@require_http_methods(["GET", "HEAD", "POST"])
def policies(request: HttpRequest) -> HttpResponse:
    """List the rules; `?q=` searches, `?edit=1&agent=&tool=` fills the form with one. A POST sets one."""
    if request.method != "POST":
        return _draw(request, entered=_edited(request))
    entered = {field: request.POST.get(field, "").strip() for field in ENTERED}
    replaces = (entered["was_agent"], entered["was_tool"]) if entered["was"] else None
    try:
        row = row_of({field: entered[field] or None for field in FIELDS} | _terms(entered))
        actions.set_policy(
            request.user, row, expected=entered["expected"], replaces=replaces, reason=entered["reason"][:2000]
        )
    except SwitchboardError as error:
        return _draw(request, error, entered=entered)
    return _back("set")


@takes("policies")
@require_POST
def removals(request: HttpRequest) -> HttpResponse:
    """Remove a rule, unless it was changed since the page was drawn."""
    target = (request.POST.get("agent", ""), request.POST.get("tool", ""))
    try:
        actions.remove_policy(request.user, target, expected=request.POST.get("expected", ""))
    except SwitchboardError as error:
        return _draw(request, error, entered={})
    return _back("removed")


def _terms(entered: dict[str, str]) -> dict[str, object]:
    """Read what a form says of questions: a time, and boxes that are ticked."""
    notify = entered["notify"] if entered["on_expiry"] == "notify" else ""  # a list has always one chosen
    limit: dict[str, object] = {"deadline_s": seconds_of(entered["deadline_s"]), "notify": notify}
    return limit | {field: bool(entered[field]) for field in ("four_eyes", "no_always")}


def _back(done: str) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('policies')}?{urlencode({'done': done})}")


def _edited(request: HttpRequest) -> dict[str, str]:
    """Answer the form's content: the rule that is edited, or what a link proposes for a new one."""
    agent, tool = request.GET.get("agent", "")[:200], request.GET.get("tool", "")[:401]
    row = policy.stored().get((agent, tool))
    if row is None:
        return {"agent": agent, "tool": tool}
    facts = {"was": "yes", "was_agent": row.agent, "was_tool": row.tool, "expected": actions.state_of(row)}
    told = {field: str(value) for field in FIELDS if (value := getattr(row, field))}
    told |= {"deadline_s": time_of(row.deadline_s)} if row.deadline_s else {}
    return told | facts if request.GET.get("edit") else {}


def _draw(request: HttpRequest, error: SwitchboardError | None = None, *, entered: dict[str, str]) -> HttpResponse:
    if isinstance(error, NotAllowed):
        raise error
    q = request.GET.get("q", "").strip()[:200]
    count, rows = policy_view.shown(q, most=MOST)
    codes = policy_view.codes_of_served()
    return page(
        request,
        "policies.html",
        status=status_of(error),
        q=q,
        rows=rows,
        count=count,
        most=MOST,
        rules=policy.RULES,
        effects=policy.EFFECTS,
        ends=policy_view.ENDS,
        roles=ROLES,
        settings_say=policy_view.settings_say(),
        does=policy_view.DOES,
        agents=sorted({agent for agent, _ in codes})[:MOST],
        tools=sorted({tool for _, tool in codes if tool})[:MOST],
        entered=dict.fromkeys(ENTERED, "") | entered,
        error=hidden.spell(error.message) if error and error.field not in FIELDS else "",
        fault={field: hidden.spell(error.message) if error and error.field == field else "" for field in ENTERED},
        done=request.GET.get("done", "") if error is None else "",
    )
