"""The page of a fork to be made: what it will have, other words for its last message, who goes on. A POST makes it."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from conversations import epoch, links, log
from conversations.actions import forks as actions
from conversations.actions.forks import Answering
from conversations.errors import Conflict, Invalid, NotFound, SwitchboardError
from conversations.fragments import hidden
from conversations.fragments.who import who
from conversations.ids import new_id
from conversations.models import Agent, Conversation, Event, Run
from dashboard.pages.allowed import takes
from dashboard.pages.entries import entries_of
from dashboard.pages.errors import status_of
from dashboard.pages.frame import page as draw
from dashboard.pages.numbers_in import number

SHOWN = 4  # entries of the parent, the last before the fork
MOST = 200  # agents offered


@require_http_methods(["GET", "HEAD", "POST"])
@takes("control")
def fork(request: HttpRequest, cid: str) -> HttpResponse:
    """Ask how to fork at `?event=N` (without it: at the end) or from where `?run=ID` began; a POST does it."""
    found = Conversation.objects.visible().filter(key=cid).first()
    if found is None or not found.head_seq:
        raise NotFound("No conversation has this id. It may be mistyped, or history went back.")
    run = _run(request, found)
    at = actions.began_at(run) if run else min(number(request, "event") or found.head_seq, found.head_seq)
    if request.method != "POST":
        return _draw(request, found, max(1, at), run)
    try:
        made = _forked(request, found, max(1, at), run)
    except (Conflict, Invalid) as error:
        return _draw(request, found, max(1, at), run, error)
    if made.run:  # what runs is watched at the tail
        return HttpResponseRedirect(reverse("conversation", args=[made.conversation]))
    return HttpResponseRedirect(links.of_event(made.conversation, made.seq))


def _forked(request: HttpRequest, found: Conversation, at: int, run: Run | None) -> actions.Forked:
    """Do what the pressed button says. Words that were not changed are the old ones."""
    asked: dict[str, Any] = {"reason": _posted(request, "reason"), "client_id": request.POST.get("client_id", "")[:100]}
    if run is not None:
        return actions.rerun(request.user, run.id, **asked)
    words, is_run = request.POST.get("words"), bool(request.POST.get("run"))
    if words is not None and _plain(words) == _plain(_words_of(found, at) or ""):
        words = None
    elif words is not None:
        words = _plain(words)
    agent = _posted(request, "agent") if is_run else ""
    return actions.fork(request.user, found.key, at, words=words, run=is_run, agent=agent, **asked)


def _draw(
    request: HttpRequest, found: Conversation, at: int, run: Run | None, error: SwitchboardError | None = None
) -> HttpResponse:
    answering = actions.answering_at(found, at)
    page = log.page_before(found.key, at + 1, SHOWN)
    posted = {name: str(value) for name, value in request.POST.items()} if error else {}
    words = _words_of(found, at) if run is None else None
    is_sooner = run is None and words is None and 0 < answering.seq < at
    agents = list(Agent.objects.order_by("-is_entry", "name").values_list("name", flat=True)[:MOST])
    return draw(
        request, "fork.html", status=status_of(error), epoch=epoch.current(), conversation=found, at=at, run=run,
        name=hidden.spell(found.title or found.key), entries=entries_of(page), words=posted.get("words", words),
        answering=answering if answering.seq else None, whom=_whom(answering),
        sooner=answering.seq if is_sooner and _words_of(found, answering.seq) is not None else 0,
        agent=posted.get("agent", answering.agent),
        agents=[one for one in dict.fromkeys(agents) if hidden.is_clean(one)], client_id=new_id(),
        run_agent=hidden.spell(run.agent) if run else "", reason=posted.get("reason", ""),
        error=hidden.spell(error.message) if error else "",
    )  # fmt: skip


def _whom(answering: Answering) -> str:
    return hidden.spell(who(answering.sender).name) if answering.sender else ""


def _words_of(found: Conversation, at: int) -> str | None:
    """Answer what can be said in other words: that of a message at the fork."""
    event = Event.objects.filter(conversation=found, seq=at).first()
    return log.words(event.body) if event is not None and actions.is_changeable(event) else None


def _run(request: HttpRequest, found: Conversation) -> Run | None:
    name = request.GET.get("run", "")
    if not name:
        return None
    run = Run.objects.filter(id=name, conversation=found, parent_call=None, kind="agent").first()
    if run is None:
        raise NotFound("No run of this conversation has this id.")
    return run


def _posted(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "").strip()[:2000]


def _plain(words: str) -> str:
    return words.replace("\r\n", "\n")
