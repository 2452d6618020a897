"""`/api/v1/read-markers`: how far the signed-in person has read. Called by the list and the conversation page."""

from django.db.models import F
from django.db.models.functions import Greatest
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods
from pydantic import BaseModel, Field, ValidationError

from conversations import rights
from conversations.errors import Invalid, NotAllowed, NotFound
from conversations.log import writing
from conversations.models import Conversation, Event, ReadMarker, User

MOST = 200  # ids of one request


class Mark(BaseModel):
    """What a page has shown to its reader."""

    conversation_id: str = Field(max_length=200)
    last_seq: int = Field(ge=0, le=2**53)
    messages_seen: int | None = Field(None, ge=0, le=2**53)  # left out: those up to last_seq


@require_http_methods(["GET", "HEAD", "POST"])
def read_markers(request: HttpRequest) -> JsonResponse:
    """GET `?ids=…&ids=…` answers the markers of these; POST moves one forward, never back, and answers it."""
    rights.require(request.user, "view")
    if not isinstance(request.user, User):
        raise NotAllowed("a token reads for nobody, so it has no markers")
    if request.method == "POST":
        return JsonResponse(_move(request.user, _mark(request.body)))
    return JsonResponse({"items": _items(request.user, request.GET.getlist("ids")[:MOST]), "cursor": None})


def _items(reader: User, keys: list[str]) -> list[dict[str, object]]:
    markers = ReadMarker.objects.filter(user=reader, conversation__key__in=keys)
    names = ("conversation__key", "last_seq", "messages_seen")
    return [
        {"conversation_id": key, "last_seq": last_seq, "messages_seen": seen}
        for key, last_seq, seen in markers.values_list(*names)
    ]


def _mark(body: bytes) -> Mark:
    try:
        return Mark.model_validate_json(body)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise Invalid(wrong["msg"], field=".".join(map(str, wrong["loc"]))) from None


def _move(reader: User, mark: Mark) -> dict[str, object]:
    """Move it in one statement, no further than history goes: two windows of one person cannot take it back."""
    found = Conversation.objects.visible().filter(key=mark.conversation_id).values_list("id", "head_seq", "messages")
    if not (conversation := found.first()):
        raise NotFound("no such conversation", field="conversation_id")
    pk, head_seq, messages = conversation
    last_seq = min(mark.last_seq, head_seq)
    seen = mark.messages_seen if mark.messages_seen is not None else messages - _said_after(pk, last_seq)
    seen = max(0, min(seen, messages))
    with writing():
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
    """Count what was said after a seq. An envelope that repeats an output counts too: then one more stays unread."""
    return Event.objects.filter(conversation=pk, seq__gt=seq, kind__in=("message", "output")).count()
