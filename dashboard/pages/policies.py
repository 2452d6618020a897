"""The policies page, for admins: the operators' rules for tools, each in words."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.core.errors import SwitchboardError
from conversations.models.people import ROLES
from conversations.runs.policy import edit_policy, evaluate, view
from conversations.runs.policy.file_format import FIELDS, row_of, seconds_of, time_of
from dashboard.pages import form_error
from dashboard.require_permission import require_permission

ENTERED = (*FIELDS, "reason", "expected", "was", "was_agent", "was_tool")  # fields of the form
PLACED = ("agent", "tool", "rule", "effect", "note", "deadline_s", "notify", "reason")  # show their error beside them
MAX_ROWS = 200  # rows of a page; a search finds the others


@require_permission("policies")
@require_http_methods(["GET", "HEAD", "POST"])
def policies(request: HttpRequest) -> HttpResponse:
    """List the rules; `?q=` searches, `?edit=1&agent=&tool=` fills the form with one. A POST sets a rule."""
    if request.method != "POST":
        return _draw(request, entered=_edited(request))
    entered = {field: request.POST.get(field, "").strip() for field in ENTERED}
    replaces = (entered["was_agent"], entered["was_tool"]) if entered["was"] else None
    try:
        row = row_of({field: entered[field] or None for field in FIELDS} | _terms(entered))
        edit_policy.set_policy(
            request.user, row, expected=entered["expected"], replaces=replaces, reason=entered["reason"][:2000]
        )
    except SwitchboardError as error:
        return _draw(request, error, entered=entered)
    return _back("set", {"saved_agent": row.agent, "saved_tool": row.tool})


@require_permission("policies")
@require_POST
def removals(request: HttpRequest) -> HttpResponse:
    """Remove a rule. Raises Conflict if it changed since the page was drawn."""
    target = (request.POST.get("agent", ""), request.POST.get("tool", ""))
    try:
        edit_policy.remove_policy(request.user, target, expected=request.POST.get("expected", ""))
    except SwitchboardError as error:
        return _draw(request, error, entered={})
    return _back("removed")


def _terms(entered: dict[str, str]) -> dict[str, object]:
    """Read the terms for approval requests from the form: a time limit and check boxes."""
    notify = entered["notify"] if entered["on_expiry"] == "notify" else ""  # a list has always one chosen
    limit: dict[str, object] = {"deadline_s": seconds_of(entered["deadline_s"]), "notify": notify}
    return limit | {field: bool(entered[field]) for field in ("four_eyes", "no_always")}


def _back(done: str, saved: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponseRedirect(reverse("policies", query={"done": done, **(saved or {})}))


def _edited(request: HttpRequest) -> dict[str, str]:
    """Return the form's fields: of the edited rule, or as a link proposes them for a new one."""
    agent, tool = request.GET.get("agent", "")[:200], request.GET.get("tool", "")[:401]
    row = evaluate.stored().get((agent, tool))
    if row is None:
        return {"agent": agent, "tool": tool}
    previous = {"was": "yes", "was_agent": row.agent, "was_tool": row.tool, "expected": edit_policy.state_of(row)}
    fields = {field: str(value) for field in FIELDS if (value := getattr(row, field))}
    fields |= {"deadline_s": time_of(row.deadline_s)} if row.deadline_s else {}
    return fields | previous if request.GET.get("edit") else {}


def _draw(request: HttpRequest, error: SwitchboardError | None = None, *, entered: dict[str, str]) -> HttpResponse:
    q = request.GET.get("q", "").strip()[:200]
    count, rows = view.shown(q, most=MAX_ROWS)
    codes = view.codes_of_served()
    saved = (request.GET.get("saved_agent", ""), request.GET.get("saved_tool", ""))
    return form_error.draw(
        request,
        "policies.html",
        error,
        entered=entered,
        fields=ENTERED,
        beside=PLACED,
        q=q,
        rows=rows,
        count=count,
        most=MAX_ROWS,
        rules=evaluate.RULES,
        effects=evaluate.EFFECTS,
        ends=view.ENDS,
        roles=ROLES,
        settings_say=view.settings_say(),
        does=view.DOES,
        agents=sorted({agent for agent, _ in codes})[:MAX_ROWS],
        tools=sorted({tool for _, tool in codes if tool})[:MAX_ROWS],
        remarks=next((row.remarks for row in rows if (row.row.agent, row.row.tool) == saved), []),
    )
