"""What people do to runs, to tool calls and to questions about them: `/api/v1/runs/…`, `/api/v1/tool-calls/…`,
`/api/v1/approvals/…` (design 3.6)."""

from datetime import UTC, datetime

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from conversations.actions import answers, approvals
from conversations.actions import runs as actions
from conversations.errors import Conflict
from conversations.models import Approval
from dashboard.api import bodies
from dashboard.api.shapes import ToAnswer, ToDecide
from dashboard.api.shapes_rules import ToDecideMany
from dashboard.pages.allowed import takes


@require_POST
@takes("decide")
def decision(request: HttpRequest, id: str) -> JsonResponse:
    """Decide a question: 200 with who decided what and when, or 409 with the same facts: `already_decided`, or
    `cancelled` or `expired` when the question was over."""
    asked = bodies.read(request, ToDecide)
    try:
        found = approvals.decide(request.user, id, **asked.model_dump())
    except Conflict as error:
        first = Approval.objects.filter(id=id).exclude(status="pending").first()
        if error.code not in ("already_decided", "cancelled", "expired") or first is None:
            raise
        return JsonResponse({"error": error.as_dict() | _told(first)}, status=error.status)
    return JsonResponse({"approval_id": found.id, "run_id": found.run, **_told(found)})


@require_POST
@takes("respond")
def answer(request: HttpRequest, id: str) -> JsonResponse:
    """Answer by hand a call that waits for its client: 200 `{tool_call, response_id}`, 409 `already_answered` with `by`
    and `at`, `continued` or `not_continuable`."""
    asked = bodies.read(request, ToAnswer)
    response = answers.answer_call(request.user, id, asked.output, reason=asked.reason)
    return JsonResponse({"tool_call": id, "response_id": response})


@require_POST
@takes("decide")
def decisions(request: HttpRequest) -> JsonResponse:
    """Decide several: 200 with an answer for each, in order; one failing takes no other."""
    asked = bodies.read(request, ToDecideMany)
    more = {"message": asked.message, "reason": asked.reason}
    done = approvals.decide_each(request.user, asked.approvals, asked.decision, **more)
    return JsonResponse({"items": [_item(one) for one in done]})


@require_POST
@takes("control")
def again(request: HttpRequest, id: str) -> JsonResponse:
    """Queue a new run on the input of one that ended badly: 201 `{run_id}`."""
    return JsonResponse({"run_id": actions.run_again(request.user, id)}, status=201)


@require_POST
@takes("control")
def cancellation(request: HttpRequest, id: str) -> JsonResponse:
    """Ask a run to stop, which its worker hears within a second: 202 `{run_id}`."""
    actions.stop(request.user, id)
    return JsonResponse({"run_id": id}, status=202)


def _item(one: approvals.Outcome) -> dict[str, object]:
    if one.error is None:
        return {"approval_id": one.approval, "status": 200}
    first = Approval.objects.filter(id=one.approval).exclude(status="pending").first()
    told = _told(first) if first is not None and isinstance(one.error, Conflict) else {}
    return {"approval_id": one.approval, "status": one.error.status, "error": one.error.as_dict() | told}


def _told(found: Approval) -> dict[str, str]:
    at = datetime.fromtimestamp((found.decided_at or 0) / 1e6, UTC).isoformat()
    return {"by": found.decided_by or "", "at": at, "decision": found.decision or "", "status": found.status}
