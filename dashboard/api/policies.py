"""`/api/v1/policies`: the operators' policy as a whole, in the form that `manage.py policy` prints and loads."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods

from conversations import policy, policy_form
from conversations.actions.policies import load_policies
from dashboard.pages.allowed import takes


@require_http_methods(["GET", "HEAD", "PUT"])
@takes("policies")
def policies(request: HttpRequest) -> JsonResponse:
    """GET answers it; PUT makes the body the whole of it, or changes nothing, and answers it."""
    if request.method == "PUT":
        load_policies(request.user, policy_form.read(request.body.decode("utf-8", "replace")))
    return JsonResponse(policy_form.written(policy.stored().values()))
