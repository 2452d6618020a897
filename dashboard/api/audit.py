"""`GET /api/v1/audit` by the filters of the page (design 3.6)."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from conversations.auditlog import filters, listing
from conversations.auditlog.rows import item
from dashboard.api.queries import limit_of
from dashboard.pages.allowed import takes


@require_safe
@takes("audit")
def entries(request: HttpRequest) -> JsonResponse:
    """Answer entries newest first, by the filters of the page; `?before=` a cursor, `?limit=` (1 to 200).

    With few or no items and a cursor there may be more further back; `looked_at` is how many were walked past then.
    """
    page = listing.newest(
        filters.strictly(dict(request.GET.lists())),
        before=listing.seq_of(request.GET.get("before", "")),
        limit=limit_of(request),
    )
    cursor = str(page.after) if page.after else None
    items = [item(entry) for entry in page.entries]
    return JsonResponse({"items": items, "cursor": cursor, "looked_at": page.looked_at or None})
