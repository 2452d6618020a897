"""`GET /api/v1/conversations`: the list for programs and for the palette (design 3.6)."""

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from conversations import epoch, fleet, rights
from conversations.errors import Invalid

MOST = 200  # items of one answer


@require_safe
def conversations(request: HttpRequest) -> JsonResponse:
    """Answer conversations newest first: `?q=`, `?participant=`, `?before=` (a cursor), `?limit=` (1 to 200)."""
    rights.require(request.user, "view")
    page = fleet.newest(
        q=request.GET.get("q", ""),
        participant=request.GET.get("participant", ""),
        before=request.GET.get("before", ""),
        limit=_limit(request.GET.get("limit", "50")),
    )
    now = epoch.current()
    return JsonResponse({"items": [_item(row, now) for row in page.rows], "cursor": page.cursor})


def _item(row: fleet.Row, now: str) -> dict[str, object]:
    return {
        "conversation_id": row.key,
        "title": row.title,
        "epoch": now,
        "head_seq": row.head_seq,
        "participants": [name for name, _ in row.participants],
        "messages": row.messages,
        "tool_calls": row.tool_calls,
        "errors": row.errors,
        "state": row.shown_state,
        "owner": row.owner,
        "last_activity_at": row.moment.isoformat(),
        "url": reverse("conversation", args=[row.key]),
    }


def _limit(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= MOST:
        raise Invalid(f"expected a number from 1 to {MOST}, got {text[:20]!r}", field="limit")
    return int(text)
