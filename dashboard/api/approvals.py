"""`GET /api/v1/approvals` and one of them (design 3.6)."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from conversations import inbox
from dashboard.api.queries import limit_of
from dashboard.pages.allowed import takes


@require_safe
@takes("view")
def approvals(request: HttpRequest) -> JsonResponse:
    """Answer questions newest first: `?status=` pending (those that can be decided), decided, expired or cancelled;
    `?before=` a cursor, `?limit=` (1 to 200)."""
    found, cursor = inbox.page(
        status=request.GET.get("status", ""),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
    )
    return JsonResponse({"items": [inbox.item(one) for one in found], "cursor": cursor})


@require_safe
@takes("view")
def approval(request: HttpRequest, id: str) -> JsonResponse:
    """Answer one question."""
    return JsonResponse(inbox.item(inbox.find(id)))
