"""`POST /api/v1/conversations/{id}/presence`: report whether a page's viewer is typing, viewing or away.

A hint for the other viewers (§3.5), which is not stored. That a viewer is present at all is known from their socket.
"""

from django.http import HttpRequest, JsonResponse
from pydantic import BaseModel, Field

from conversations.access import permissions
from conversations.core.errors import NotAllowed, NotFound
from conversations.models import Conversation, User
from conversations.realtime import presence as viewers
from dashboard.api.openapi.operations import FORM, Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas.core import Shape


class ToReportPresence(BaseModel):
    """What a viewer is doing in a conversation. `typing` ends after 6 seconds unless it is repeated."""

    state: viewers.State = Field(description="typing, looking, or away (the page is not visible)")


class ReportedPresence(Shape):
    """The other viewers have been notified."""

    conversation_id: str
    state: viewers.State


@endpoint(
    post=Operation(
        "Report to the other viewers that you are typing, viewing, or away.",
        {200: ReportedPresence},
        body=ToReportPresence,
        security=(FORM,),
    )
)
def presence(request: HttpRequest, cid: str) -> JsonResponse:
    """Notify the other viewers: 200 `{conversation_id, state}`."""
    permissions.require(request.user, "view")
    if not isinstance(request.user, User):
        raise NotAllowed("tokens have no presence; sign in as a person")
    body = read_body(request, ToReportPresence)
    if not Conversation.objects.visible().filter(key=cid).exists():
        raise NotFound("there is no such conversation")
    viewers.say(cid, request.user.username, body.state)
    return JsonResponse({"conversation_id": cid, "state": body.state})
