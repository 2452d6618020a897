"""Forks: `POST /api/v1/conversations/{id}/forks`, and of a run `POST /api/v1/runs/{id}/forks`."""

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from conversations.actions import forks as actions
from dashboard.api import bodies
from dashboard.api.shapes_steering import ToFork, ToRerun
from dashboard.pages.allowed import takes


@require_POST
@takes("control")
def forks(request: HttpRequest, cid: str) -> JsonResponse:
    """Fork a conversation after an event, with other words, and run on, as asked: 201 with the fork."""
    asked = bodies.read(request, ToFork)
    return _answer(actions.fork(request.user, cid, asked.at, **asked.model_dump(exclude={"at"})))


@require_POST
@takes("control")
def reruns(request: HttpRequest, id: str) -> JsonResponse:
    """Fork a conversation at where a run began, and have its agent answer the same again: 201 with the fork."""
    asked = bodies.read(request, ToRerun)
    return _answer(actions.rerun(request.user, id, **asked.model_dump()))


def _answer(made: actions.Forked) -> JsonResponse:
    told = {"conversation_id": made.conversation, "seq": made.seq, "run_id": made.run or None}
    return JsonResponse(told | {"url": reverse("conversation", args=[made.conversation])}, status=201)
