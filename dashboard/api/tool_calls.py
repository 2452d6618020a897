"""`GET /api/v1/tool-calls`, with the filters of the page, and the saved views (§3.6)."""

from django.http import HttpRequest, JsonResponse

from conversations import models, search
from conversations.tool_calls.listing import query
from conversations.tool_calls.listing.filters import NUMBERS, STATUSES, CallFilters
from conversations.tool_calls.listing.rows import item, rows, within
from conversations.tool_calls.saved_views import remove_view, rename_view, save_view
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, many, one_of
from dashboard.api.request_input import limit_of, list_params, read_body
from dashboard.api.schemas.tool_calls import Removed, SavedView, SavedViews, ToName, ToolCalls, ToSaveView
from dashboard.require_permission import require_permission

QUERY = list_params(
    CallFilters,
    {
        "status": many(one_of(STATUSES)),
        **{name: {"type": "number", "minimum": 0} for name in NUMBERS},
        **dict.fromkeys(("q", "conversation", "run", "call_id", "before"), TEXT),
        "replayed": one_of(("yes", "no")),
        "where": one_of(("around",)),
    },
)


@endpoint(
    get=Operation(
        "List tool calls, newest first. Takes the filters of the page: all must match; of repeated values, any.",
        {200: ToolCalls},
        query=QUERY,
    )
)
@require_permission("view")
def tool_calls(request: HttpRequest) -> JsonResponse:
    """Return calls newest first; `before` is a cursor.

    If there are few or no items and a cursor, there may be more further back; `looked_at` is the number of calls
    searched, and `lag` that of recorded events whose words are not searchable yet.
    """
    filters = CallFilters.parse_strict(dict(request.GET.lists()))
    lag = search.lag().events if filters.q else 0  # before the calls: what is indexed meanwhile is among them
    fixed, before = filters.of_page(request.GET.get("before", ""))
    page = within(query.newest(fixed, before=query.position_of(before), limit=limit_of(request)))
    items = [item(row) for row in rows(page.items, whole=True)]
    cursor = filters.cursor(page.after, fixed.since)
    return JsonResponse({"items": items, "cursor": cursor, "looked_at": page.looked_at or None, "lag": lag})


@endpoint(
    get=Operation("List the saved views of the tool-calls page.", {200: SavedViews}, errors=(400,)),
    post=Operation("Save a filter under a name, for everyone.", {201: SavedView}, body=ToSaveView, errors=(409,)),
)
@require_permission("view")
def saved_views(request: HttpRequest) -> JsonResponse:
    """List the saved views by name, or save one (POST `{name, query}`)."""
    if request.method != "POST":
        return JsonResponse({"items": [_view_item(view) for view in models.SavedView.objects.all()]})
    body = read_body(request, ToSaveView)
    return JsonResponse(_view_item(save_view(request.user, body.name, body.query)), status=201)


@endpoint(
    put=Operation("Rename a view; allowed for its creator and admins.", {200: SavedView}, body=ToName, errors=(409,))
)
@require_permission("view")
def saved_view(request: HttpRequest, number: int) -> JsonResponse:
    """Rename a view."""
    body = read_body(request, ToName)
    rename_view(request.user, number, body.name)
    return JsonResponse(_view_item(models.SavedView.objects.get(pk=number)))


@endpoint(post=Operation("Remove a view; allowed for its creator and admins.", {200: Removed}))
@require_permission("view")
def removal(request: HttpRequest, number: int) -> JsonResponse:
    """Remove a view: 200 with its number."""
    remove_view(request.user, number)
    return JsonResponse({"id": number})


def _view_item(view: models.SavedView) -> dict[str, object]:
    return {
        "id": view.pk, "name": view.name, "query": view.query, "made_by": view.made_by,
        "made_at": view.made_at.isoformat(),
    }  # fmt: skip
