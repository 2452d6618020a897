"""`POST /api/v1/conversations/{id}/presence`: a page tells that its reader types, looks, or has put it away.

A hint for the others who look (design 3.5), kept nowhere; that somebody looks at all is known by their socket.
"""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST
from pydantic import BaseModel, Field

from conversations import presence as lookers
from conversations import rights
from conversations.errors import NotAllowed, NotFound
from conversations.models import Conversation, User
from dashboard.api import bodies
from dashboard.api.shapes import Shape


class Doing(BaseModel):
    """What somebody does with a conversation now. `typing` is over after 6 seconds unless it is said again."""

    state: lookers.State = Field(description="typing, looking, or away: the page is not in sight")


class Done(Shape):
    """It was told to those who look."""

    conversation_id: str
    state: lookers.State


@require_POST
def presence(request: HttpRequest, cid: str) -> JsonResponse:
    """Tell it to the others: 200 `{conversation_id, state}`."""
    rights.require(request.user, "view")
    if not isinstance(request.user, User):
        raise NotAllowed("a token looks for nobody")
    asked = bodies.read(request, Doing)
    if not Conversation.objects.visible().filter(key=cid).exists():
        raise NotFound("no such conversation")
    lookers.say(cid, request.user.username, asked.state)
    return JsonResponse({"conversation_id": cid, "state": asked.state})
