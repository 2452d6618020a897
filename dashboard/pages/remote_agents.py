"""Remote agents that speak AG-UI, for admins: register by address, list, remove."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.core import hidden_characters
from conversations.core.errors import SwitchboardError
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.runs import edit_remote_agents
from dashboard.pages import form_error
from dashboard.require_permission import require_permission

ENTERED = ("name", "url", "token", "description")  # fields of the form
SECRET = "token"  # what is not drawn again


@require_permission("tokens")
@require_http_methods(["GET", "HEAD", "POST"])
def remote_agents(request: HttpRequest) -> HttpResponse:
    """List the registered agents; a POST registers one."""
    if request.method != "POST":
        return _draw(request)
    remote = RemoteAgent(**{field: request.POST.get(field, "").strip() for field in ENTERED})
    try:
        edit_remote_agents.register(request.user, remote, reason=request.POST.get("reason", "").strip()[:2000])
    except SwitchboardError as error:
        return _draw(request, error)
    return _back("registered", remote.name)


@require_permission("tokens")
@require_POST
def removals(request: HttpRequest) -> HttpResponse:
    """Remove an agent."""
    name = request.POST.get("name", "")
    try:
        edit_remote_agents.remove(request.user, name, reason=request.POST.get("reason", "").strip()[:2000])
    except SwitchboardError as error:
        return _draw(request, error)
    return _back("removed", name)


def _back(done: str, name: str) -> HttpResponse:
    return HttpResponseRedirect(reverse("remote-agents", query={"done": done, "name": name}))


def _draw(request: HttpRequest, error: SwitchboardError | None = None) -> HttpResponse:
    entered = {field: request.POST.get(field, "") if error and field != SECRET else "" for field in ENTERED}
    return form_error.draw(
        request,
        "remote_agents.html",
        error,
        entered=entered,
        fields=ENTERED,
        rows=edit_remote_agents.listed(),
        most=edit_remote_agents.MAX_AGENTS,
        name=hidden_characters.spelled_out(request.GET.get("name", "")[:100]),
    )
