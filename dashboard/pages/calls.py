"""The tool-calls page: every call of every agent, newest first, by filters that live in the address. Live by
`static/js/call-list.js`."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from markupsafe import Markup

from conversations import epoch
from conversations.actions import saved_views as actions
from conversations.actions.call_exports import begin_export
from conversations.errors import Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.fragments import hidden, richtext
from conversations.fragments.calls import STATES, WORDS
from conversations.fragments.who import who
from conversations.models import SavedView
from conversations.rights import principal_of
from conversations.toolcalls import export as exporting
from conversations.toolcalls import filters as reading
from conversations.toolcalls import listing
from conversations.toolcalls.export import TYPES, Form
from conversations.toolcalls.facets import facets
from conversations.toolcalls.filters import Filters
from conversations.toolcalls.rows import rows
from dashboard.pages.allowed import takes
from dashboard.pages.errors import status_of
from dashboard.pages.frame import page as draw

PAGE = 50  # calls
ENTERED = (*reading.NUMBERS, "from", "to", "conversation", "run")  # what is shown as it was typed
NAMES = {
    "status": "Status", "agent": "Agent", "tool": "Tool", "qualified": "Qualified name", "origin": "Origin",
    "server": "MCP server", "by": "Decided by", "replayed": "Replayed", "q": "Words", "where": "Words",
    "conversation": "Conversation", "run": "Run", "call_id": "Call id", "last": "In the last", "since": "From",
    "until": "To", "min_ms": "At least, ms", "max_ms": "At most, ms", "min_bytes": "At least, bytes",
    "max_bytes": "At most, bytes",
}  # fmt: skip


@require_safe
@takes("view")
def calls(request: HttpRequest) -> HttpResponse:
    """List the calls; `?part=list` answers the rows alone, `?part=facets` what else there is to filter by."""
    found, wrong = reading.read(dict(request.GET.lists()))
    part = request.GET.get("part", "")
    if part == "facets":
        return draw(request, "partials/calls_facets.html", **_faceted(request, found, wrong))
    if part == "list":
        return draw(request, "partials/calls_list.html", **_listed(request, found, wrong))
    return _page(request, found, wrong)


@require_POST
@takes("view")
def save(request: HttpRequest) -> HttpResponse:
    """Save a filter under a name, for everybody."""
    name, query = request.POST.get("name", ""), request.POST.get("query", "")
    return _changed(request, lambda: actions.save_view(request.user, name, query).query)


@require_POST
@takes("view")
def change(request: HttpRequest, number: int) -> HttpResponse:
    """Rename a saved view, or with `verb=remove` remove it."""

    def act() -> str:
        if request.POST.get("verb") == "remove":
            actions.remove_view(request.user, number)
            return ""
        return actions.rename_view(request.user, number, request.POST.get("name", ""))

    return _changed(request, act)


@require_safe
@takes("export")
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Send every call that the filters leave, as CSV or JSON lines."""
    if form not in TYPES:
        raise NotFound("expected csv or jsonl")
    found = reading.strictly(dict(request.GET.lists()))
    begin_export(request.user, found, form)
    kind: Form = "csv" if form == "csv" else "jsonl"
    headers = {"Content-Disposition": f'attachment; filename="tool-calls.{form}"', "X-Accel-Buffering": "no"}
    pieces: AsyncIterator[bytes] | Iterator[bytes] = (
        iter(()) if request.method == "HEAD" else exporting.export(found, kind, principal_of(request.user))
    )
    return StreamingHttpResponse(pieces, content_type=TYPES[form], headers=headers)


def _changed(request: HttpRequest, act: Callable[[], str]) -> HttpResponse:
    """Do it and go to the list by the view's filters; what cannot be done is said there."""
    try:
        query = act()
    except NotAllowed:
        raise
    except SwitchboardError as error:
        found, wrong = reading.read(dict(QueryDict(request.POST.get("query", "")[:4000]).lists()))
        return _page(request, found, wrong, error=error)
    return HttpResponseRedirect(f"{reverse('calls')}{f'?{query}' if query else ''}")


def _page(
    request: HttpRequest, found: Filters, wrong: dict[str, str], error: SwitchboardError | None = None
) -> HttpResponse:
    views = [(view, richtext.inline(view.name), hidden.spell(view.name)) for view in SavedView.objects.all()]
    context = _listed(request, found, wrong) | _faceted(request, found, wrong)
    status = 400 if wrong and not error else status_of(error)
    return draw(
        request, "calls.html", status=status, epoch=epoch.current(), views=views,
        error=hidden.spell(error.message) if error else "", **context,
    )  # fmt: skip


def _listed(request: HttpRequest, found: Filters, wrong: dict[str, str]) -> dict[str, Any]:
    before, is_far = request.GET.get("before", ""), request.GET.get("look") == "far"
    page, place = listing.Page([], None), None
    try:
        place = listing.place_of(before)
    except Invalid as error:
        wrong["before"] = error.message
    if not wrong:
        walk = listing.FAR if is_far else listing.WALK
        page = listing.newest(found, before=place, limit=PAGE, walk=walk)
    drawn = rows(page.calls)
    return {
        "filters": found,
        "wrong": {name: hidden.spell(message) for name, message in wrong.items()},
        "rows": drawn,
        "chips": _chips(found),
        "before": before,
        "newest_href": _href(found),
        "older_href": _href(found, page.after) if page.after else "",
        "looked_at": page.looked_at,
        "looked_to": listing.moment_of(page.after) if page.looked_at and page.after else None,
        "names": NAMES,
    }


def _faceted(request: HttpRequest, found: Filters, wrong: dict[str, str]) -> dict[str, Any]:
    return {
        "entered": {name: request.GET.get(name, "")[:200] for name in ENTERED},
        "filters": found,
        "facets": facets(found),
        "wrong": {name: hidden.spell(message) for name, message in wrong.items()},
        "names": NAMES,
        "last": reading.LAST,
        "where": reading.WHERE,
        "glyphs": STATES,
        "words": {status: WORDS.get(status, status) for status in reading.STATUSES},
        "inline": lambda value: richtext.inline(value[:200]),
        "name_of": lambda principal: who(principal, principal).name,
        "spell": hidden.spell,
        "is_clean": hidden.is_clean,
        "moments": {
            name: reading.iso(at) for name, at in (("from", found.since), ("to", found.until)) if at is not None
        },
    }


def _chips(found: Filters) -> list[tuple[str, Markup, str]]:
    """Answer the filters in force: name, what is asked for, and the address without it."""
    chips = []
    names = {"from": "since", "to": "until"}
    for name in dict.fromkeys(names.get(name, name) for name, _ in found.pairs if name != "where"):
        said = [text for other, text in found.pairs if names.get(other, other) == name]
        words = reading.LAST[found.last][0] if name == "last" else ", ".join(said)
        chips.append(
            (NAMES[name], richtext.inline(words[:120]), _href(found.without(name, *["where"] * (name == "q"))))
        )
    return chips


def _href(found: Filters, after: object = None) -> str:
    query = "&".join(filter(None, (found.query, f"before={after}" if after else "")))
    return reverse("calls") + (f"?{query}" if query else "")
