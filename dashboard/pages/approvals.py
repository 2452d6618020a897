"""The approvals pages: what waits for a person, and one question with everything that can be done about it."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from conversations.access import permissions
from conversations.core import hidden_characters
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.events import epoch
from conversations.models import ToolSchema
from conversations.runs.approvals import auto_approval, decide, inbox
from conversations.runs.approvals import auto_approval_edit as actions_of_rules
from conversations.tool_calls.schemas import argument_form
from dashboard.pages import auto_approvals, tool_call_replay
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.pages.require_permission import require_permission

PAGE = 50  # questions
VIEWS = {"": ("Waiting", "pending"), "decided": ("Decided", "decided"), "all": ("All", "")}
SHOWN = 2_000  # characters of a message


@require_safe
@require_permission("view")
def approvals(request: HttpRequest) -> HttpResponse:
    """List questions: those that wait, oldest first; `?view=decided` or `?view=all`, newest first; `?before=` the next
    page. Live where no further page hides what comes new."""
    view = request.GET.get("view", "")
    if view not in VIEWS:
        raise NotFound("There is no such list.")
    before, is_waiting = request.GET.get("before", ""), not view
    cards, cursor = inbox.page(status=VIEWS[view][1], before=before, limit=PAGE, is_oldest_first=is_waiting)
    further = urlencode({name: value for name, value in (("view", view), ("before", cursor)) if value})
    return render_page(
        request, "approvals.html", epoch=epoch.current(), questions=cards, drawn=inbox.drawn, view=view, views=VIEWS,
        further=f"?{further}" if cursor else "", is_live=not cursor if is_waiting else not before,
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@require_permission("view")
def approval(request: HttpRequest, id: str) -> HttpResponse:
    """Draw one question; a POST decides it as the pressed button says."""
    if request.method != "POST":
        return _draw(request, id)
    permissions.require(request.user, "decide")
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
        decide.decide(request.user, id, **_answer(request, id))
        return ""
    scope, reason = auto_approvals.scope_of(request, inbox.find(id)), request.POST.get("reason", "").strip()[:SHOWN]
    actions_of_rules.approve_and_make_rule(request.user, id, scope, reason=reason)
    return f"?{urlencode({'always': len(auto_approval.approve_waiting())})}"


def _answer(request: HttpRequest, id: str) -> dict[str, Any]:
    """Read the form: `decide` is approve, reject, respond, fields (edit by the typed fields) or raw (by JSON)."""
    pressed, posted = request.POST.get("decide", ""), {name: str(value) for name, value in request.POST.items()}
    answer: dict[str, Any] = {"decision": {"fields": "edit", "raw": "edit"}.get(pressed, pressed)}
    answer |= {name: posted.get(name, "").strip()[:SHOWN] for name in ("message", "reason")}
    if pressed == "respond":
        answer["output"] = posted.get("output", "").replace("\r\n", "\n")
    elif pressed == "fields":
        answer["arguments"] = argument_form.read(_schema(inbox.find(id)), posted)
    elif pressed == "raw":
        answer["arguments"] = posted.get("raw", "")
    return answer


def _draw(request: HttpRequest, id: str, error: SwitchboardError | None = None) -> HttpResponse:
    card = inbox.find(id)
    entered = {name: str(value) for name, value in request.POST.items()} if error else {}
    schema, body = _schema(card), card.told
    arguments = body.get("args") if isinstance(body.get("args"), dict) else None
    written = _written(arguments) if arguments is not None else body.get("args_raw")
    also = request.GET.get("always", "")
    return render_page(
        request, "approval.html", status=status_of(error), epoch=epoch.current(), q=card,
        entries=argument_form.entries(schema, arguments, entered), has_schema=bool(schema), entered=entered,
        raw=entered.get("raw", written or ""), spelled=hidden_characters.spelled_out(str(body.get("args_raw") or "")),
        always=auto_approvals.choices(card), same=request.POST.getlist("same"), also=also if also.isdecimal() else "",
        error=hidden_characters.spelled_out(error.sentence) if error else "",
        today=tool_call_replay.question(card.row.tool_call),
    )  # fmt: skip


def _written(arguments: dict[str, Any]) -> str:
    """Write arguments to be edited; where the eye cannot see a character, as escapes: it is the same JSON."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return text if hidden_characters.is_clean(text.replace("\n", "")) else json.dumps(arguments, indent=2)


def _schema(card: inbox.ApprovalCard) -> dict[str, Any]:
    body = ToolSchema.objects.filter(hash=card.told.get("schema") or "").values_list("body", flat=True).first()
    read = json.loads(body).get("params_json_schema") if body else None
    return read if isinstance(read, dict) else {}
