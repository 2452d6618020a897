"""`GET /api/v1/audit`, with the filters of the page (§3.6)."""

from django.http import HttpRequest, JsonResponse

from conversations.access.audit import reveal
from conversations.access.audit.listing import query
from conversations.access.audit.listing.filters import OUTCOMES, AuditFilters
from conversations.access.audit.listing.rows import item, revealed_item
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of
from dashboard.api.request_input import limit_of, list_params
from dashboard.api.schemas.audit import AuditEntries, AuditEntry
from dashboard.require_permission import require_permission

QUERY = list_params(
    AuditFilters,
    {**dict.fromkeys(("target", "conversation", "q", "before"), TEXT), "outcome": one_of(OUTCOMES)},
)


@endpoint(
    get=Operation(
        "List audit entries, newest first. Takes the filters of the page: all must match; of repeated values, any.",
        {200: AuditEntries},
        query=QUERY,
    )
)
@require_permission("audit")
def entries(request: HttpRequest) -> JsonResponse:
    """Return entries newest first; `before` is a cursor.

    If there are few or no items and a cursor, there may be more further back; `looked_at` is the number of entries
    searched.
    """
    filters = AuditFilters.parse_strict(dict(request.GET.lists()))
    fixed, before = filters.of_page(request.GET.get("before", ""))
    page = query.newest(fixed, before=query.position_of(before), limit=limit_of(request))
    cursor = filters.cursor(page.after, fixed.since)
    items = [item(entry) for entry in page.items]
    return JsonResponse({"items": items, "cursor": cursor, "looked_at": page.looked_at or None})


@endpoint(
    post=Operation(
        "Read an audit entry without masking secrets. Each access is itself an audit entry.",
        {200: AuditEntry},
        errors=(404,),
    )
)
@require_permission("audit")
def revealed(request: HttpRequest, number: int) -> JsonResponse:
    """Return an entry unmasked, after recording this access."""
    reveal.reveal(request.user, number)
    (entry,) = query.newest(AuditFilters(), before=number + 1, limit=1).items
    return JsonResponse(revealed_item(entry), headers={"Cache-Control": "no-store"})
