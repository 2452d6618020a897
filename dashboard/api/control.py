"""Steering conversations: `POST /api/v1/conversations/{id}/control` for one, `POST /api/v1/control` for several.

The one route of page and script: a form of a page is led back to it, JSON is answered.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from conversations.actions import control as actions
from conversations.actions.control import Outcome
from conversations.errors import SwitchboardError
from conversations.models import Conversation
from dashboard.api import bodies
from dashboard.api.shapes_steering import ToSteer, ToSteerMany
from dashboard.pages import errors
from dashboard.pages.allowed import takes


@require_POST
@takes("control")
def control(request: HttpRequest, cid: str) -> HttpResponse:
    """Pause, resume, take over, hand back, stop or abort: 200 with how it stands then, or 409 with who was first."""
    if request.content_type == "application/json":
        asked = bodies.read(request, ToSteer)
        return JsonResponse(_stands(actions.steer(request.user, asked.action, cid, asked.reason)))
    try:
        actions.steer(request.user, request.POST.get("action", ""), cid, request.POST.get("reason", "").strip())
    except SwitchboardError as error:
        return errors.page(request, error, "Go back and look how it stands now.")
    return HttpResponseRedirect(reverse("conversation", args=[cid]))


@require_POST
@takes("control")
def control_many(request: HttpRequest) -> HttpResponse:
    """Do one action to up to 200 conversations: 200 with an answer for each, in order; one failing takes no other."""
    if request.content_type == "application/json":
        asked = bodies.read(request, ToSteerMany)
        done = actions.steer_each(request.user, asked.action, asked.conversations, asked.reason)
        return JsonResponse({"items": [_item(one) for one in done]})
    keys, reason = request.POST.getlist("conversation"), request.POST.get("reason", "").strip()
    try:
        done = actions.steer_each(request.user, request.POST.get("action", ""), keys, reason)
        if failed := [one for one in done if one.error is not None]:
            raise _first(failed, len(done))
    except SwitchboardError as error:
        return errors.page(request, error, "Go back and look how they stand now.")
    return HttpResponseRedirect(_place(request))


def _first(failed: list[Outcome], asked: int) -> SwitchboardError:
    error = failed[0].error
    assert error is not None
    error.message = f"{len(failed)} of {asked} not done. {failed[0].conversation[:80]}: {error.message}"
    return error


def _item(one: Outcome) -> dict[str, Any]:
    if one.error is None:
        return {"conversation_id": one.conversation, "status": 200}
    return {"conversation_id": one.conversation, "status": one.error.status, "error": one.error.as_dict()}


def _stands(found: Conversation) -> dict[str, Any]:
    shown = "person" if found.owner else found.state
    return {"conversation_id": found.key, "state": shown, "paused": found.state == "paused", "owner": found.owner}


def _place(request: HttpRequest) -> str:
    """Lead back to the list as it was filtered."""
    back = request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/")
    return back if is_ours else reverse("conversations")
