"""The page that connects an agent: choose what it runs on, make a token, copy the lines, and see its first event
live."""

import itertools

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from conversations.access.accounts.tokens import make_token
from conversations.conversation import first_steps
from conversations.core import hidden_characters
from conversations.core.errors import NotAllowed, SwitchboardError
from conversations.models import Token
from dashboard.pages.base_context import render_page
from dashboard.pages.connect_sources import RECORDINGS, SOURCES, Connection, SetupStep
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission

AGENT, SOURCE = "MyAgent", "http"


@require_permission("tokens")
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """Make a token for an agent (POST) and show it once with the set-up lines. `?source=` is what the agent runs on;
    `?token=` and `?after=` wait for its first event, and `&part=waiting` returns only that part."""
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
    agent, after = _agent(request), first_steps.newest_event()
    source = SOURCES[_source(request)]
    try:
        secret = make_token(request.user, agent, source.role)
    except SwitchboardError as error:
        return _draw(request, error)
    url = request.build_absolute_uri("/").rstrip("/")
    steps = source.steps(Connection(url, secret, agent))
    return _draw(request, token=agent, after=after, steps=steps)


def _agent(request: HttpRequest) -> str:
    return request.POST.get("agent", "").strip() or _free_name()


def _free_name() -> str:
    """Return the first of MyAgent, MyAgent-2, … that no token has or had."""
    taken = set(Token.objects.filter(name__startswith=AGENT).values_list("name", flat=True))
    numbered = (f"{AGENT}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([AGENT], numbered) if name not in taken)


def _source(request: HttpRequest) -> str:
    name = request.POST.get("source") or request.GET.get("source") or SOURCE
    return name if name in SOURCES else SOURCE


def _draw(
    request: HttpRequest, error: SwitchboardError | None = None, *, token: str = "", after: int = 0,
    steps: list[SetupStep] | None = None,
) -> HttpResponse:  # fmt: skip
    if isinstance(error, NotAllowed):
        raise error
    chosen = _source(request)
    return render_page(
        request,
        "connect.html",
        status=status_of(error),
        sources=SOURCES,
        recordings=RECORDINGS,
        chosen=chosen,
        source=SOURCES[chosen],
        agent=_agent(request),
        fault=hidden_characters.spelled_out(error.sentence_beside) if error else "",
        token=hidden_characters.spelled_out(token),
        steps=steps or [],
        waiting_href=reverse("connect", query={"token": token, "after": after, "part": "waiting"}) if token else "",
        event_href=first_steps.first_event_href(token, after) if token else "",
    )
