"""`/api/v1/policies`: the operators' whole policy, in the format that `manage.py policy` prints and loads."""

from django.http import HttpRequest, JsonResponse

from conversations.runs.policy import evaluate, file_format
from conversations.runs.policy.edit_policy import load_policies
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.schemas.core import PolicyFile
from dashboard.require_permission import require_permission


@endpoint(
    get=Operation("Read the policy.", {200: PolicyFile}, errors=(400,)),
    put=Operation("Replace the whole policy, or change nothing on errors.", {200: PolicyFile}, body=PolicyFile),
)
@require_permission("policies")
def policies(request: HttpRequest) -> JsonResponse:
    """Return the policy (GET), or replace all of it with the body (PUT); an invalid body changes nothing."""
    if request.method == "PUT":
        load_policies(request.user, file_format.read(request.body.decode("utf-8", "replace")))
    return JsonResponse(file_format.dump(evaluate.stored().values()))
