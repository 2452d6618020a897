"""The approvals pages: what waits for a person, and one question with everything that can be done about it."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from conversations import epoch, inbox, rights
from conversations.actions import approvals as actions
from conversations.actions import granting
from conversations.actions import rules as actions_of_rules
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.fragments import hidden
from conversations.models import ToolSchema
from conversations.tools import form
from dashboard.pages import replay_parts, rules
from dashboard.pages.allowed import takes
from dashboard.pages.errors import status_of
from dashboard.pages.frame import page as draw

PAGE = 50  # questions
VIEWS = {"": ("Waiting", "pending"), "decided": ("Decided", "decided"), "all": ("All", "")}
SHOWN = 2_000  # characters of a message


@require_safe
@takes("view")
def approvals(request: HttpRequest) -> HttpResponse:
    """List questions, newest first: those that wait, `?view=decided` or `?view=all`; `?before=` older ones."""
    view = request.GET.get("view", "")
    if view not in VIEWS:
        raise NotFound("there is no such list")
    found, cursor = inbox.page(status=VIEWS[view][1], before=request.GET.get("before", ""), limit=PAGE)
    older = urlencode({name: value for name, value in (("view", view), ("before", cursor)) if value})
    return draw(
        request, "approvals.html", epoch=epoch.current(), questions=found, drawn=inbox.drawn, view=view, views=VIEWS,
        older=f"?{older}" if cursor else "", is_first="before" not in request.GET,
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@takes("view")
def approval(request: HttpRequest, id: str) -> HttpResponse:
    """Draw one question; a POST decides it as the pressed button says."""
    if request.method != "POST":
        return _draw(request, id)
    rights.require(request.user, "decide")
    try:
        done = _decide(request, id)
    except (Conflict, Invalid) as error:
        return _draw(request, id, error)
    except NotAllowed as error:
        if error.code != "four_eyes":
            raise
        return _draw(request, id, error)
    return HttpResponseRedirect(f"{reverse('approval', args=[id])}{done}")


def _decide(request: HttpRequest, id: str) -> str:
    """Do what the pressed button says; answer what the page is drawn with afterwards."""
    if request.POST.get("decide") != "always":
        actions.decide(request.user, id, **_answer(request, id))
        return ""
    scope, reason = rules.scope_of(request, inbox.find(id)), request.POST.get("reason", "").strip()[:SHOWN]
    actions_of_rules.approve_always(request.user, id, scope, reason=reason)
    return f"?{urlencode({'always': len(granting.approve_waiting())})}"


def _answer(request: HttpRequest, id: str) -> dict[str, Any]:
    """Read the form: `decide` is approve, reject, respond, fields (edit by the typed fields) or raw (by JSON)."""
    pressed, posted = request.POST.get("decide", ""), {name: str(value) for name, value in request.POST.items()}
    told: dict[str, Any] = {"decision": {"fields": "edit", "raw": "edit"}.get(pressed, pressed)}
    told |= {name: posted.get(name, "").strip()[:SHOWN] for name in ("message", "reason")}
    if pressed == "respond":
        told["output"] = posted.get("output", "").replace("\r\n", "\n")
    elif pressed == "fields":
        told["arguments"] = form.read(_schema(inbox.find(id)), posted)
    elif pressed == "raw":
        told["arguments"] = posted.get("raw", "")
    return told


def _draw(request: HttpRequest, id: str, error: SwitchboardError | None = None) -> HttpResponse:
    found = inbox.find(id)
    entered = {name: str(value) for name, value in request.POST.items()} if error else {}
    schema, told = _schema(found), found.told
    arguments = told.get("args") if isinstance(told.get("args"), dict) else None
    written = _written(arguments) if arguments is not None else told.get("args_raw")
    also = request.GET.get("always", "")
    return draw(
        request, "approval.html", status=status_of(error), epoch=epoch.current(), q=found,
        entries=form.entries(schema, arguments, entered), has_schema=bool(schema), entered=entered,
        raw=entered.get("raw", written or ""), spelled=hidden.spell(str(told.get("args_raw") or "")),
        always=rules.choices(found), same=request.POST.getlist("same"), also=also if also.isdecimal() else "",
        error=hidden.spell(error.message) if error else "",
        today=replay_parts.question(found.row.tool_call),
    )  # fmt: skip


def _written(arguments: dict[str, Any]) -> str:
    """Write arguments to be edited; where the eye cannot see a character, as escapes: it is the same JSON."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return text if hidden.is_clean(text.replace("\n", "")) else json.dumps(arguments, indent=2)


def _schema(found: inbox.Question) -> dict[str, Any]:
    kept = ToolSchema.objects.filter(hash=found.told.get("schema") or "").values_list("body", flat=True).first()
    read = json.loads(kept).get("params_json_schema") if kept else None
    return read if isinstance(read, dict) else {}
