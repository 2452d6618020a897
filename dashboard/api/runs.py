"""Actions on runs and on calls that wait for a client: `/api/v1/runs/…`, `/api/v1/tool-calls/ID/answer` (§3.6)."""

from django.http import HttpRequest, JsonResponse

from conversations.runs import stop_and_rerun
from conversations.runs.responses import manual_output
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas import core
from dashboard.api.schemas.control import RunNamed
from dashboard.api.schemas.core import ToAnswer
from dashboard.require_permission import require_permission


@endpoint(
    post=Operation(
        "Supply the output of a call that waits for its client, once; the response chain continues with it.",
        {200: core.Answered},
        body=ToAnswer,
        errors=(409,),
    )
)
@require_permission("respond")
def answer(request: HttpRequest, id: str) -> JsonResponse:
    """Supply the output of a call that waits for its client: 200 `{tool_call, response_id}`, 409 `already_answered`
    with `by` and `at`, `continued` or `not_continuable`."""
    body = read_body(request, ToAnswer)
    response = manual_output.answer_call(request.user, id, body.output, reason=body.reason)
    return JsonResponse({"tool_call": id, "response_id": response})


@endpoint(post=Operation("Run again a run that ended badly, with the same input.", {201: RunNamed}, errors=(409,)))
@require_permission("control")
def again(request: HttpRequest, id: str) -> JsonResponse:
    """Queue a new run with the input of one that ended badly: 201 `{run_id}`, 409 `already_run_again` while a newer run
    of that input has not ended, or if one is done."""
    return JsonResponse({"run_id": stop_and_rerun.run_again(request.user, id)}, status=201)


@endpoint(post=Operation("Stop a run.", {202: RunNamed}, errors=(409,)))
@require_permission("control")
def cancellation(request: HttpRequest, id: str) -> JsonResponse:
    """Request that a run stop, which takes effect within a second: 202 `{run_id}`."""
    stop_and_rerun.cancel_run(request.user, id)
    return JsonResponse({"run_id": id}, status=202)
