"""The tool calls page: every call of every agent, newest first, with filters in the address. Live by
`static/js/call-list.js`. One call and its replay: `call_page.py`."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations import search
from conversations.core import hidden_characters
from conversations.core.errors import NotAllowed, SwitchboardError
from conversations.core.micros import to_datetime
from conversations.events import epoch
from conversations.models import SavedView
from conversations.rendering import richtext
from conversations.rendering.participant_marks import mark_for
from conversations.rendering.tool_call_block import STATES, WORDS
from conversations.tool_calls import saved_views
from conversations.tool_calls.listing import activity
from conversations.tool_calls.listing import query as listing
from conversations.tool_calls.listing.export import EXPORT
from conversations.tool_calls.listing.facets import facets
from conversations.tool_calls.listing.filters import NUMBERS, STATUSES, WHERE, CallFilters
from conversations.tool_calls.listing.rows import rows
from dashboard.pages.base_context import render_page
from dashboard.pages.call_histogram import histogram
from dashboard.pages.errors import status_of
from dashboard.pages.filtered_lists import FilteredList
from dashboard.require_permission import require_permission

FAR_BEHIND = 1_000  # events not indexed yet; with fewer, a list with words is simply loaded again a moment later
NAMES = {
    "status": "Status", "agent": "Agent", "tool": "Tool", "qualified": "Qualified name", "origin": "Origin",
    "server": "MCP server", "by": "Decided by", "replayed": "Replayed", "q": "Words", "where": "Words",
    "conversation": "Conversation", "run": "Run", "call_id": "Call ID", "last": "In the last", "since": "From",
    "until": "To", "min_ms": "At least, ms", "max_ms": "At most, ms", "min_bytes": "At least, bytes",
    "max_bytes": "At most, bytes",
}  # fmt: skip
LIST = FilteredList(
    "calls", CallFilters, listing.newest, listing.position_of, NAMES,
    as_typed=(*NUMBERS, "from", "to", "conversation", "run"), max_typed=200, max_value=200, parts={"q": "where"},
)  # fmt: skip


@require_safe
@require_permission("view")
def calls(request: HttpRequest) -> HttpResponse:
    """List the calls; `?part=list` returns only the rows, `?part=facets` only the filter choices."""
    filters, wrong = CallFilters.read(dict(request.GET.lists()))
    part = request.GET.get("part", "")
    if part == "facets":
        return render_page(request, "partials/calls_facets.html", **_faceted(request, filters, wrong))
    if part == "list":
        return render_page(request, "partials/calls_list.html", **_listed(request, filters, wrong))
    return _page(request, filters, wrong)


@require_POST
@require_permission("view")
def save(request: HttpRequest) -> HttpResponse:
    """Save the current filters as a view with a name, for everyone."""
    name, query = request.POST.get("name", ""), request.POST.get("query", "")
    return _changed(request, lambda: saved_views.save_view(request.user, name, query).query)


@require_POST
@require_permission("view")
def change(request: HttpRequest, number: int) -> HttpResponse:
    """Rename a saved view, or with `verb=remove` remove it."""

    def act() -> str:
        if request.POST.get("verb") == "remove":
            saved_views.remove_view(request.user, number)
            return ""
        return saved_views.rename_view(request.user, number, request.POST.get("name", ""))

    return _changed(request, act)


@require_safe
@require_permission("export")
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Send every call that matches the filters, as CSV or JSON lines."""
    return LIST.send_file(request, EXPORT, form)


def _changed(request: HttpRequest, act: Callable[[], str]) -> HttpResponse:
    """Change a saved view and redirect to the list with its filters; an error is shown there."""
    try:
        query = act()
    except NotAllowed:
        raise
    except SwitchboardError as error:
        filters, wrong = CallFilters.read(dict(QueryDict(request.POST.get("query", "")[:4000]).lists()))
        return _page(request, filters, wrong, error=error)
    return HttpResponseRedirect(f"{reverse('calls')}{f'?{query}' if query else ''}")


def _page(
    request: HttpRequest, filters: CallFilters, wrong: dict[str, str], error: SwitchboardError | None = None
) -> HttpResponse:
    views = [
        (view, richtext.inline(view.name), hidden_characters.spelled_out(view.name)) for view in SavedView.objects.all()
    ]
    context = _listed(request, filters, wrong) | _faceted(request, filters, wrong)
    status = 400 if wrong and not error else status_of(error)
    return render_page(
        request, "calls.html", status=status, epoch=epoch.current(), views=views,
        error=hidden_characters.spelled_out(error.sentence) if error else "", **context,
    )  # fmt: skip


def _listed(request: HttpRequest, filters: CallFilters, wrong: dict[str, str]) -> dict[str, Any]:
    lag = search.lag() if filters.q else search.Lag(0)  # before the rows: what is indexed meanwhile is among them
    page = LIST.page(request, filters, wrong)
    counted = None if wrong else activity.activity(filters)
    return LIST.page_context(filters, wrong, page) | {
        "rows": rows(page.items),
        "lag": lag,
        "is_far_behind": lag.events >= FAR_BEHIND,
        "figure": histogram(counted) if counted else None,
        "before": request.GET.get("before", ""),
        "looked_to": to_datetime(page.after.at) if page.looked_at and page.after else None,
    }


def _faceted(request: HttpRequest, filters: CallFilters, wrong: dict[str, str]) -> dict[str, Any]:
    return LIST.facets_context(request, filters, wrong) | {
        "facets": facets(filters),
        "where": WHERE,
        "glyphs": STATES,
        "words": {status: WORDS.get(status, status) for status in STATUSES},
        "name_of": lambda principal: mark_for(principal, principal).name,
    }
