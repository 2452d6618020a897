"""`GET /api/v1/conversations` and one of them: for programs and for the palette (design 3.6)."""

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from conversations import epoch, fleet, rights
from conversations.models import Conversation
from dashboard.api.queries import limit_of


@require_safe
def conversations(request: HttpRequest) -> JsonResponse:
    """Answer conversations newest first: `?q=`, `?participant=`, `?state=`, `?before=` (a cursor), `?limit=` (1-200).

    An agent's token gets those in which somebody else named it.
    """
    agent = rights.agent_of(request.user)
    if not agent:
        rights.require(request.user, "view")
    page = fleet.newest(
        q=request.GET.get("q", ""),
        participant=request.GET.get("participant", ""),
        state=request.GET.get("state", ""),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
        agent=agent,
    )
    now = epoch.current()
    parents = _parents(page.rows)
    return JsonResponse({"items": [_item(row, now, parents) for row in page.rows], "cursor": page.cursor})


@require_safe
def conversation(request: HttpRequest, cid: str) -> JsonResponse:
    """Answer one conversation."""
    rights.require(request.user, "view", f"conversation:{cid}")
    row = fleet.find(cid)
    return JsonResponse(_item(row, epoch.current(), _parents([row])))


def _parents(rows: Sequence[fleet.Row]) -> dict[int, str]:
    """Answer whose forks these are."""
    forks = [row.id for row in rows if row.forked_at is not None]
    found = Conversation.objects.filter(id__in=forks, parent__is_staged=False) if forks else Conversation.objects.none()
    return dict(found.values_list("id", "parent__key"))


def _item(row: fleet.Row, now: str, parents: Mapping[int, str]) -> dict[str, object]:
    parent = parents.get(row.id)
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
        "forked_from": {"conversation_id": parent, "seq": row.forked_at} if parent else None,
        "url": reverse("conversation", args=[row.key]),
    }
