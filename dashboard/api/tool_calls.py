"""`GET /api/v1/tool-calls` by the filters of the page, and the saved views (design 3.6)."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.actions import saved_views as actions
from conversations.models import SavedView
from conversations.toolcalls import filters, listing
from conversations.toolcalls.rows import item, rows, within
from dashboard.api import bodies
from dashboard.api.call_shapes import ToName, ToSaveView
from dashboard.api.queries import limit_of
from dashboard.pages.allowed import takes


@require_safe
@takes("view")
def tool_calls(request: HttpRequest) -> JsonResponse:
    """Answer calls newest first, by the filters of the page; `?before=` a cursor, `?limit=` (1 to 200).

    With few or no items and a cursor there may be more further back; `looked_at` is how many were walked past then.
    """
    found = listing.newest(
        filters.strictly(dict(request.GET.lists())),
        before=listing.place_of(request.GET.get("before", "")),
        limit=limit_of(request),
    )
    page = within(found)
    items = [item(row) for row in rows(page.calls, whole=True)]
    cursor = str(page.after) if page.after else None
    return JsonResponse({"items": items, "cursor": cursor, "looked_at": page.looked_at or None})


@require_http_methods(["GET", "HEAD", "POST"])
@takes("view")
def saved_views(request: HttpRequest) -> JsonResponse:
    """Answer the views that people saved, by name; a POST `{name, query}` saves one."""
    if request.method != "POST":
        return JsonResponse({"items": [_told(view) for view in SavedView.objects.all()]})
    asked = bodies.read(request, ToSaveView)
    return JsonResponse(_told(actions.save_view(request.user, asked.name, asked.query)), status=201)


@require_http_methods(["PUT"])
@takes("view")
def saved_view(request: HttpRequest, number: int) -> JsonResponse:
    """Give a view another name."""
    asked = bodies.read(request, ToName)
    actions.rename_view(request.user, number, asked.name)
    return JsonResponse(_told(SavedView.objects.get(pk=number)))


@require_POST
@takes("view")
def removal(request: HttpRequest, number: int) -> JsonResponse:
    """Remove a view: 200 with its number."""
    actions.remove_view(request.user, number)
    return JsonResponse({"id": number})


def _told(view: SavedView) -> dict[str, object]:
    return {
        "id": view.pk, "name": view.name, "query": view.query, "made_by": view.made_by,
        "made_at": view.made_at.isoformat(),
    }  # fmt: skip
