"""`GET /api/v1/conversations` and `/{id}`: for programs and for the command palette (§3.6)."""

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from conversations.access import permissions
from conversations.conversation import conversation_list, conversation_row
from conversations.events import epoch
from conversations.models import Conversation, User
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of
from dashboard.api.request_input import LIMIT, limit_of
from dashboard.api.schemas import core


@endpoint(
    get=Operation(
        "List conversations, newest first.",
        {200: core.Conversations},
        query={
            "q": TEXT,
            "participant": TEXT,
            "state": TEXT | one_of(conversation_list.FILTERS),
            "before": TEXT,
            "limit": LIMIT,
        },
    )
)
def conversations(request: HttpRequest) -> JsonResponse:
    """Return conversations newest first; `before` is a cursor.

    An agent's token gets those in which somebody else named that agent. If there are few or no items and a cursor,
    there may be more further back.
    """
    agent = permissions.agent_of(request.user)
    if not agent:
        permissions.require(request.user, "view")
    page = conversation_list.newest_conversations(
        q=request.GET.get("q", ""),
        participant=request.GET.get("participant", ""),
        state=request.GET.get("state", ""),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
        reader=request.user if isinstance(request.user, User) else None,
        agent=agent,
    )
    now = epoch.current()
    parents = _parents(page.rows)
    return JsonResponse({"items": [_item(row, now, parents) for row in page.rows], "cursor": page.cursor})


@endpoint(get=Operation("Read one conversation.", {200: core.Conversation}))
def conversation(request: HttpRequest, cid: str) -> JsonResponse:
    """Return one conversation."""
    permissions.require(request.user, "view", f"conversation:{cid}")
    row = conversation_list.find(cid)
    return JsonResponse(_item(row, epoch.current(), _parents([row])))


def _parents(rows: Sequence[conversation_row.ConversationRow]) -> dict[int, str]:
    """Return the parents of forked conversations."""
    forks = [row.id for row in rows if row.forked_at is not None]
    parents = (
        Conversation.objects.filter(id__in=forks, parent__is_staged=False) if forks else Conversation.objects.none()
    )
    return dict(parents.values_list("id", "parent__key"))


def _item(row: conversation_row.ConversationRow, now: str, parents: Mapping[int, str]) -> dict[str, object]:
    parent = parents.get(row.id)
    return {
        "conversation_id": row.key,
        "title": row.title,
        "epoch": now,
        "head_seq": row.head_seq,
        "participants": [name for name, _ in row.participants],
        "has_more_participants": row.has_more_participants,
        "messages": row.messages,
        "tool_calls": row.tool_calls,
        "errors": row.errors,
        "state": row.shown_state,
        "shown_state": dict(zip(("state", "words"), row.glyph, strict=True)),
        "owner": row.owner,
        "last_activity_at": row.moment.isoformat(),
        "forked_from": {"conversation_id": parent, "seq": row.forked_at} if parent else None,
        "url": reverse("conversation", args=[row.key]),
    }
