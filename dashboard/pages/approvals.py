"""The approvals page: a list of requests, and beside it one with its decision form, which posts here. Clients of the
API decide through `dashboard/api/approvals.py`."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from conversations.access import permissions
from conversations.core import page_urls
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.events import epoch
from conversations.runs.approvals import auto_approval, auto_approval_edit, decide, inbox
from conversations.runs.approvals.inbox_filters import NAMES, Filters
from conversations.tool_calls.schemas import argument_form
from dashboard.pages import approval_card, auto_approvals
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import is_from_script, status_of
from dashboard.require_permission import require_permission

PAGE = 50  # approval requests
VIEWS = {"": ("Waiting", "pending"), "decided": ("Decided", "decided"), "all": ("All", "")}
SHOWN = 2_000  # characters of a message
ALWAYS = "Matching calls will be approved automatically from now on."
EDITORS: dict[str, argument_form.Editor] = {"approve": "", "fields": "fields", "raw": "raw"}  # by button


@require_safe
@require_permission("view")
def approvals(request: HttpRequest) -> HttpResponse:
    """List approval requests: the waiting ones, oldest first; with `?view=decided` or `?view=all`, newest first; by
    `?agent=`, `?tool=` and `?risk=`; `?before=` gives the next page. Show the first of them beside the list."""
    return _page(request)


@require_http_methods(["GET", "HEAD", "POST"])
@require_permission("view")
def approval(request: HttpRequest, id: str) -> HttpResponse:
    """Show one approval request beside the list, `?part=card` alone, `?part=form` only its form.

    A POST decides it by the button pressed; a script receives `{done, words, html}`, where html is its block."""
    if request.method != "POST":
        return _drawn(request, inbox.find(id))
    permissions.require(request.user, "decide")
    approval_request = inbox.find(id)
    try:
        also = _decide(request, approval_request)
    except (Conflict, Invalid) as error:
        return _refused(request, id, error)
    except NotAllowed as error:
        if error.code != "four_eyes":
            raise
        return _refused(request, id, error)
    if not is_from_script(request):
        return HttpResponseRedirect(_next(request, approval_request, also))
    decided = inbox.find(id)
    words = f"{decided.verdict.partition(' by ')[0].capitalize()}: {decided.subject}."
    words += f" {_always_words(also)}" if also else ""
    return JsonResponse({"done": True, "words": words, "html": approval_card.block(request, decided)})


def _drawn(request: HttpRequest, approval_request: inbox.ApprovalCard) -> HttpResponse:
    part = request.GET.get("part", "")
    if part == "form":
        return HttpResponse(approval_card.form(request, approval_request) if approval_request.is_open else "")
    if part == "card":
        return render_page(request, "partials/approval.html", **approval_card.card(request, approval_request))
    return _page(request, approval_request)


def _decide(request: HttpRequest, approval_request: inbox.ApprovalCard) -> str:
    """Decide as the pressed button says; return the number of further requests it decided, as text, or an empty
    text."""
    id_ = approval_request.row.id
    if request.POST.get("decide") != "always":
        decide.decide(request.user, id_, **_answer(request, approval_request))
        return ""
    approval_card.require_unedited(approval_request, request.POST)
    scope, reason = auto_approvals.scope_of(request, approval_request), request.POST.get("reason", "").strip()[:SHOWN]
    auto_approval_edit.approve_and_make_rule(request.user, id_, scope, reason=reason)
    return str(len(auto_approval.approve_waiting()))


def _answer(request: HttpRequest, approval_request: inbox.ApprovalCard) -> dict[str, Any]:
    """Read the decision from the form: `decide` is approve, reject, respond, fields (edited in typed fields) or raw
    (edited as JSON). `always` is handled by `_decide`."""
    pressed, posted = request.POST.get("decide", ""), {name: str(value) for name, value in request.POST.items()}
    answer: dict[str, Any] = {"decision": pressed}
    answer |= {name: posted.get(name, "").strip()[:SHOWN] for name in ("message", "reason")}
    if pressed == "respond":
        answer["output"] = posted.get("output", "").replace("\r\n", "\n")
    elif pressed in EDITORS:
        arguments = approval_card.posted_arguments(approval_request, posted, EDITORS[pressed])
        answer |= {"decision": "approve"} if arguments is None else {"decision": "edit", "arguments": arguments}
    return answer


def _next(request: HttpRequest, approval_request: inbox.ApprovalCard, also: str) -> str:
    if request.POST.get("back") == "conversation" and not also:
        return page_urls.event_url(approval_request.key, approval_request.row.asked_seq)
    return reverse("approval", args=[approval_request.row.id], query={"always": also} if also else None)


def _refused(request: HttpRequest, id: str, error: SwitchboardError) -> HttpResponse:
    """Show the request again with what was entered and what is wrong, or with the decision someone else made."""
    approval_request = inbox.find(id)
    if not is_from_script(request):
        return _page(request, approval_request, error)
    html = approval_card.block(request, approval_request, request.POST, error)
    words = approval_card.words_of(error, approval_request, request)
    return JsonResponse({"done": False, "words": words, "html": html}, status=status_of(error))


def _page(
    request: HttpRequest, selected: inbox.ApprovalCard | None = None, error: SwitchboardError | None = None
) -> HttpResponse:
    view = request.GET.get("view", "")
    if view not in VIEWS:
        raise NotFound("There is no such list.")
    before, is_waiting, filters = request.GET.get("before", ""), not view, _filters(request)
    listed: Any = {"status": VIEWS[view][1], "is_oldest_first": is_waiting, "filters": filters}
    cards, cursor = inbox.page(before=before, limit=PAGE, **listed)
    shown = selected or next(iter(cards), None)
    card = approval_card.card(request, shown, request.POST if error else approval_card.NOTHING, error) if shown else {}
    also = request.GET.get("always", "")
    return render_page(
        request, "approvals.html", status=status_of(error), epoch=epoch.current(), requests=cards, drawn=inbox.drawn,
        stranded=inbox.stranded() if is_waiting and not before and not filters else [],
        view=view, views=VIEWS, further=_href(view, filters, cursor) if cursor else "", selected=selected, shown=shown,
        filters=filters, facets=inbox.facets(**listed), href=_href, query=_href(view, filters).partition("?")[2],
        is_live=not cursor if is_waiting else not before, always=_always_words(also) if also.isdecimal() else "",
        error=approval_card.words_of(error, shown, request) if error and shown and not shown.is_open else "",
        **card,
    )  # fmt: skip


def _filters(request: HttpRequest) -> Filters:
    return Filters(**{name: request.GET.get(name, "")[:401] for name in NAMES})


def _href(view: str, filters: Filters, before: str | None = "") -> str:
    """Return the address of a list."""
    params = (("view", view), *filters.chosen(), ("before", before))
    return reverse("approvals", query={name: value for name, value in params if value})


def _always_words(number: str) -> str:
    return ALWAYS + (f" Waiting calls approved as well: {number}." if number != "0" else "")
