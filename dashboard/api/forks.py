"""Forks: `POST /api/v1/conversations/{id}/forks`, and of a run `POST /api/v1/runs/{id}/forks`."""

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from conversations.conversation import fork
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas.control import ForkMade, ToFork, ToRerun
from dashboard.require_permission import require_permission


@endpoint(
    post=Operation(
        "Fork after an event, optionally with that message edited and with a new run.",
        {201: ForkMade},
        body=ToFork,
        errors=(409,),
    )
)
@require_permission("control")
def forks(request: HttpRequest, cid: str) -> JsonResponse:
    """Fork a conversation after an event, optionally with an edited message and a new run: 201 with the fork."""
    body = read_body(request, ToFork)
    return _answer(fork.fork(request.user, cid, body.at, **body.model_dump(exclude={"at"})))


@endpoint(
    post=Operation(
        "Fork at the start of a run, and have its agent answer the same message again.",
        {201: ForkMade},
        body=ToRerun,
        errors=(409,),
    )
)
@require_permission("control")
def reruns(request: HttpRequest, id: str) -> JsonResponse:
    """Fork a conversation at the start of a run, and have its agent answer the same message again: 201 with the
    fork."""
    body = read_body(request, ToRerun)
    return _answer(fork.rerun(request.user, id, **body.model_dump()))


def _answer(created: fork.CreatedFork) -> JsonResponse:
    payload = {"conversation_id": created.conversation, "seq": created.seq, "run_id": created.run or None}
    return JsonResponse(payload | {"url": reverse("conversation", args=[created.conversation])}, status=201)
