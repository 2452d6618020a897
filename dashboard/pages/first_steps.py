"""The first steps of a newcomer on the list, until dismissed; and the page that connects an agent."""

import json
import shlex

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.access.accounts.tokens import make_token
from conversations.conversation import first_steps, visits
from conversations.conversation.first_steps import FirstSteps
from conversations.core import hidden_characters
from conversations.core.errors import NotAllowed, SwitchboardError
from conversations.models import User
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.pages.require_permission import require_permission

AGENT = "MyAgent"


def shown(request: HttpRequest) -> FirstSteps | None:
    """Return what the list shows of it; None to who dismissed it, and once there is something of their own."""
    is_dismissed = isinstance(request.user, User) and visits.has_dismissed_steps(request.user.pk)
    return None if is_dismissed else first_steps.first_steps()


@require_safe
def steps(request: HttpRequest) -> HttpResponse:
    """Draw them anew: they follow what the newcomer does."""
    return render_page(request, "partials/first_steps.html", steps=first_steps.first_steps())


@require_POST
def dismissal(request: HttpRequest) -> HttpResponse:
    """Show them no more to this person."""
    if isinstance(request.user, User):
        visits.dismiss_steps(request.user.pk)
    return HttpResponseRedirect(reverse("conversations"))


@require_permission("tokens")
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """Make a token for an agent and show it, once, with what to run; `?token=` and `?after=` wait for its first event,
    `&part=waiting` answers that alone."""
    if request.method == "POST":
        return _create_token(request)
    token, after = request.GET.get("token", "")[:150], request.GET.get("after", "")
    if not token or not after.isascii() or not after.isdigit() or len(after) > 18:
        return _draw(request)
    if request.GET.get("part") == "waiting":
        href = first_steps.first_event_href(token, int(after))
        return render_page(request, "partials/first_event.html", event_href=href)
    return _draw(request, token=token, after=int(after))


def _create_token(request: HttpRequest) -> HttpResponse:
    agent = request.POST.get("agent", "").strip() or AGENT
    after = first_steps.newest_event()
    try:
        secret = make_token(request.user, agent, "agent")
    except SwitchboardError as error:
        return _draw(request, error)
    return _draw(request, token=agent, after=after, lines=_lines(request, agent, secret), secret=secret)


def _lines(request: HttpRequest, agent: str, secret: str) -> list[str]:
    """Write what sends a first event, for a shell."""
    message = {
        "type": "message", "conversation_id": f"hello-{agent}", "sender": f"agent:{agent}",
        "recipient": f"user:{request.user}", "content": f"Hello from {agent}.",
    }  # fmt: skip
    body = json.dumps({"topic": f"chat:hello-{agent}", "payload": message}, ensure_ascii=False)
    return [
        f"export SWITCHBOARD_URL={shlex.quote(request.build_absolute_uri('/').rstrip('/'))}",
        f"export SWITCHBOARD_TOKEN={shlex.quote(secret)}",
        'curl -fsS "$SWITCHBOARD_URL/api/v1/publish" -H "Authorization: Bearer $SWITCHBOARD_TOKEN"'
        f' -H "Content-Type: application/json" -d {shlex.quote(body)}',
    ]


def _draw(
    request: HttpRequest, error: SwitchboardError | None = None, *, token: str = "", after: int = 0,
    lines: list[str] | None = None, secret: str = "",
) -> HttpResponse:  # fmt: skip
    if isinstance(error, NotAllowed):
        raise error
    query = urlencode({"token": token, "after": str(after)})
    return render_page(
        request,
        "connect.html",
        status=status_of(error),
        agent=request.POST.get("agent", "").strip() or AGENT,
        fault=hidden_characters.spelled_out(error.sentence) if error else "",
        token=hidden_characters.spelled_out(token),
        lines=lines or [],
        secret=secret,
        waiting_href=f"{reverse('connect')}?{query}&part=waiting" if token else "",
        event_href=first_steps.first_event_href(token, after) if token else "",
    )
