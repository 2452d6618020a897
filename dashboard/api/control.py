"""Control conversations: `POST /api/v1/conversations/{id}/control` for one, `POST /api/v1/control` for several.

Used by both pages and programs: a page's form is redirected back to the page, JSON gets a JSON response.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from conversations.conversation.control import ControlOutcome, perform, perform_on_each
from conversations.core.errors import SwitchboardError
from conversations.models import Conversation
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas.control import ControlConflict, ControlResults, ControlState, ToControl, ToControlMany
from dashboard.pages import errors
from dashboard.require_permission import require_permission


@endpoint(
    post=Operation(
        "Pause, resume, take over, hand back, stop after this turn, or abort now.",
        {200: ControlState, 409: ControlConflict},
        body=ToControl,
    )
)
@require_permission("control")
def control(request: HttpRequest, cid: str) -> HttpResponse:
    """Pause, resume, take over, hand back, stop or abort: 200 with the new state, or 409 with the person who acted
    first."""
    if request.content_type == "application/json":
        body = read_body(request, ToControl)
        return JsonResponse(_stands(perform(request.user, body.action, cid, body.reason)))
    try:
        perform(request.user, request.POST.get("action", ""), cid, request.POST.get("reason", "").strip())
    except SwitchboardError as error:
        return errors.page(request, error, "Go back to see the current state.")
    return HttpResponseRedirect(reverse("conversation", args=[cid]))


@endpoint(
    post=Operation(
        "Apply one action to several conversations; each has its own result.",
        {200: ControlResults},
        body=ToControlMany,
    )
)
@require_permission("control")
def control_many(request: HttpRequest) -> HttpResponse:
    """Apply one action to up to 200 conversations: 200 with a result for each, in order; a failure does not affect the
    others."""
    if request.content_type == "application/json":
        body = read_body(request, ToControlMany)
        done = perform_on_each(request.user, body.action, body.conversations, body.reason)
        return JsonResponse({"items": [_item(outcome) for outcome in done]})
    keys, reason = request.POST.getlist("conversation"), request.POST.get("reason", "").strip()
    try:
        done = perform_on_each(request.user, request.POST.get("action", ""), keys, reason)
        if failed := [outcome for outcome in done if outcome.error is not None]:
            raise _first(failed, len(done))
    except SwitchboardError as error:
        return errors.page(request, error, "Go back to see the current state.")
    return HttpResponseRedirect(_place(request))


def _first(failed: list[ControlOutcome], total: int) -> SwitchboardError:
    error = failed[0].error
    assert error is not None
    error.message = f"{len(failed)} of {total} not done. {failed[0].conversation[:80]}: {error.message}"
    return error


def _item(outcome: ControlOutcome) -> dict[str, Any]:
    if outcome.error is None:
        return {"conversation_id": outcome.conversation, "status": 200}
    return {"conversation_id": outcome.conversation, "status": outcome.error.status, "error": outcome.error.as_dict()}


def _stands(conversation: Conversation) -> dict[str, Any]:
    shown = "person" if conversation.owner else conversation.state
    return {
        "conversation_id": conversation.key,
        "state": shown,
        "paused": conversation.state == "paused",
        "owner": conversation.owner,
    }


def _place(request: HttpRequest) -> str:
    """Redirect to the list with its filters."""
    back = request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/")
    return back if is_ours else reverse("conversations")
