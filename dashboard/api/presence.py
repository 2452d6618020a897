"""`POST /api/v1/conversations/{id}/presence`: a page tells that its reader types, looks, or has put it away.

A hint for the others who look (§3.5), kept nowhere; that somebody looks at all is known by their socket.
"""

from django.http import HttpRequest, JsonResponse
from pydantic import BaseModel, Field

from conversations.access import permissions
from conversations.core.errors import NotAllowed, NotFound
from conversations.models import Conversation, User
from conversations.realtime import presence as lookers
from dashboard.api.openapi.operations import FORM, Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas.core import Shape


class Doing(BaseModel):
    """What somebody does with a conversation now. `typing` is over after 6 seconds unless it is said again."""

    state: lookers.State = Field(description="typing, looking, or away (the page is not visible)")


class Done(Shape):
    """It was told to those who look."""

    conversation_id: str
    state: lookers.State


@endpoint(
    post=Operation(
        "Tell the others who look that one types, looks, or has put the page away.",
        {200: Done},
        body=Doing,
        security=(FORM,),
    )
)
def presence(request: HttpRequest, cid: str) -> JsonResponse:
    """Tell it to the others: 200 `{conversation_id, state}`."""
    permissions.require(request.user, "view")
    if not isinstance(request.user, User):
        raise NotAllowed("tokens have no presence; sign in as a person")
    body = read_body(request, Doing)
    if not Conversation.objects.visible().filter(key=cid).exists():
        raise NotFound("there is no such conversation")
    lookers.say(cid, request.user.username, body.state)
    return JsonResponse({"conversation_id": cid, "state": body.state})
