"""The agents page: teams, agents, tools and handoffs, as workers told of them. It renews itself by `live-part.js`."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations import hues, served
from dashboard.pages.frame import page


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """Show them; `?part=state` answers what changes."""
    hues.refresh()
    is_part = request.GET.get("part") == "state"
    return page(request, "partials/agents_state.html" if is_part else "agents.html", teams=served.teams())
