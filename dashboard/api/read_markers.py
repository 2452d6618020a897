"""`/api/v1/read-markers`: how far the signed-in person has read. Used by the list and the conversation page."""

from django.db.models import F
from django.db.models.functions import Greatest
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from pydantic import BaseModel, Field

from conversations.access import permissions
from conversations.conversation import visits
from conversations.core.errors import NotAllowed, NotFound
from conversations.events.log import write_transaction
from conversations.models import Conversation, Event, ReadMarker, User
from dashboard.api.openapi.operations import FORM, SESSION, TEXT, Operation, endpoint, many
from dashboard.api.request_input import read_body
from dashboard.api.schemas.core import Marker, Markers

MAX_IDS = 200  # ids of one request


class Mark(BaseModel):
    """The newest event that a page has shown to its reader."""

    conversation_id: str = Field(max_length=200)
    last_seq: int = Field(ge=0, le=2**53)
    messages_seen: int | None = Field(None, ge=0, le=2**53)  # left out: those up to last_seq


@endpoint(
    get=Operation(
        "Read your read markers.",
        {200: Markers},
        query={"ids": many(TEXT, MAX_IDS)},
        security=(SESSION,),
    ),
    post=Operation(
        "Move a read marker forward, never back.",
        {200: Marker},
        body=Mark,
        errors=(404,),
        security=(FORM,),
    ),
)
def read_markers(request: HttpRequest) -> JsonResponse:
    """Return the markers of these conversations (GET `?ids=…&ids=…`), or move one forward, never back, and return it
    (POST)."""
    permissions.require(request.user, "view")
    if not isinstance(request.user, User):
        raise NotAllowed("tokens have no read markers; sign in as a person")
    if request.method == "POST":
        visits.note(request.user.pk)
        return JsonResponse(_move(request.user, read_body(request, Mark)))
    return JsonResponse({"items": _items(request.user, request.GET.getlist("ids")[:MAX_IDS]), "cursor": None})


def _items(reader: User, keys: list[str]) -> list[dict[str, object]]:
    markers = ReadMarker.objects.filter(user=reader, conversation__key__in=keys)
    names = ("conversation__key", "last_seq", "messages_seen")
    return [
        {"conversation_id": key, "last_seq": last_seq, "messages_seen": seen}
        for key, last_seq, seen in markers.values_list(*names)
    ]


def _move(reader: User, mark: Mark) -> dict[str, object]:
    """Move a marker in one statement, no further than the history: two windows of one person cannot move it back."""
    rows = Conversation.objects.visible().filter(key=mark.conversation_id).values_list("id", "head_seq", "messages")
    if not (conversation := rows.first()):
        raise NotFound("there is no such conversation", field="conversation_id")
    pk, head_seq, messages = conversation
    last_seq = min(mark.last_seq, head_seq)
    seen = mark.messages_seen if mark.messages_seen is not None else messages - _said_after(pk, last_seq)
    seen = max(0, min(seen, messages))
    with write_transaction():
        marker, is_new = ReadMarker.objects.get_or_create(
            user=reader, conversation_id=pk, defaults={"last_seq": last_seq, "messages_seen": seen}
        )
        if not is_new:
            ReadMarker.objects.filter(pk=marker.pk).update(
                last_seq=Greatest(F("last_seq"), last_seq),
                messages_seen=Greatest(F("messages_seen"), seen),
                seen_at=timezone.now(),
            )
            marker.refresh_from_db()
    return {
        "conversation_id": mark.conversation_id,
        "last_seq": marker.last_seq,
        "messages_seen": marker.messages_seen,
    }


def _said_after(pk: int, seq: int) -> int:
    """Count the messages after a seq. An envelope that repeats an output counts too, so one message too many may stay
    unread."""
    return Event.objects.filter(conversation=pk, seq__gt=seq, kind__in=("message", "output")).count()
