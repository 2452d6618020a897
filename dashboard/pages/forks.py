"""The page that makes a fork: what it will contain, another text for its last message, which agent continues."""

from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from conversations.conversation import fork
from conversations.conversation.fork import AnsweringRun
from conversations.core import hidden_characters, page_urls
from conversations.core.errors import Conflict, Invalid, NotFound, SwitchboardError
from conversations.core.ids import new_id
from conversations.events import epoch, log
from conversations.events.payload import parse
from conversations.models import Agent, Approval, Conversation, Event, Run
from conversations.rendering.participant_marks import mark_for
from dashboard.pages.address import conversation_of, number_of
from dashboard.pages.base_context import render_page
from dashboard.pages.conversation_entries import entries_of
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission

SHOWN = 4  # entries of the parent, the last before the fork
MAX_AGENTS = 200  # agents offered
MAX_WAITING = 5  # calls named that wait for approval


@require_http_methods(["GET", "HEAD", "POST"])
@require_permission("control")
def fork_page(request: HttpRequest, cid: str) -> HttpResponse:
    """Show the form for a fork at `?event=N` (default: at the end) or from where `?run=ID` began; a POST makes the
    fork."""
    conversation = conversation_of(cid)
    if not conversation.head_seq:
        raise NotFound("This conversation has no events yet, so there is nothing to fork.")
    run = _run(request, conversation)
    at = fork.began_at(run) if run else min(number_of(request, "event") or conversation.head_seq, conversation.head_seq)
    if request.method != "POST":
        return _draw(request, conversation, max(1, at), run)
    try:
        created = _forked(request, conversation, max(1, at), run)
    except (Conflict, Invalid) as error:
        return _draw(request, conversation, max(1, at), run, error)
    if created.run:  # what runs is watched at the tail
        return HttpResponseRedirect(reverse("conversation", args=[created.conversation]))
    return HttpResponseRedirect(page_urls.event_url(created.conversation, created.seq))


def _forked(request: HttpRequest, conversation: Conversation, at: int, run: Run | None) -> fork.CreatedFork:
    """Make the fork as the pressed button says. An unchanged text counts as the old one."""
    options: dict[str, Any] = {
        "reason": _posted(request, "reason"),
        "client_id": request.POST.get("client_id", "")[:100],
    }
    if run is not None:
        return fork.rerun(request.user, run.id, **options)
    text, is_run = request.POST.get("words"), bool(request.POST.get("run"))
    if text is not None and _plain(text) == _plain(_words_of(conversation, at) or ""):
        text = None
    elif text is not None:
        text = _plain(text)
    agent = _posted(request, "agent") if is_run else ""
    return fork.fork(request.user, conversation.key, at, words=text, run=is_run, agent=agent, **options)


def _draw(
    request: HttpRequest, conversation: Conversation, at: int, run: Run | None, error: SwitchboardError | None = None
) -> HttpResponse:
    answering = fork.answering_at(conversation, at)
    page = log.page_to_copy(conversation.key, at, SHOWN)
    posted = {name: str(value) for name, value in request.POST.items()} if error else {}
    text = _words_of(conversation, at) if run is None else None
    is_sooner = run is None and text is None and 0 < answering.seq < at
    agents = list(Agent.objects.order_by("-is_entry", "name").values_list("name", flat=True)[:MAX_AGENTS])
    return render_page(
        request,
        "fork.html",
        status=status_of(error),
        epoch=epoch.current(),
        conversation=conversation,
        at=at,
        run=run,
        name=hidden_characters.spelled_out(conversation.title or conversation.key),
        entries=entries_of(page),
        words=posted.get("words", text),
        answering=answering if answering.seq else None,
        whom=_whom(answering),
        paused_calls=[] if run else _waiting_at(conversation, at),
        sooner=answering.seq if is_sooner and _words_of(conversation, answering.seq) is not None else 0,
        agent=posted.get("agent", answering.agent),
        agents=[agent_name for agent_name in dict.fromkeys(agents) if hidden_characters.is_clean(agent_name)],
        client_id=new_id(),
        run_agent=hidden_characters.spelled_out(run.agent) if run else "",
        reason=posted.get("reason", ""),
        error=hidden_characters.spelled_out(error.sentence) if error else "",
    )


def _whom(answering: AnsweringRun) -> str:
    return hidden_characters.spelled_out(mark_for(answering.sender).name) if answering.sender else ""


def _waiting_at(conversation: Conversation, at: int) -> list[str]:
    """Return the tools whose calls wait for approval right after event `at`: a fork does not continue their runs."""
    rows = Approval.objects.filter(conversation=conversation, asked_seq__lte=at).filter(
        Q(decided_seq__gt=at) | Q(decided_seq=None) & ~Q(status="expired")
    )
    runs = Run.objects.filter(conversation=conversation, id__in=rows.values("run")).exclude(ended_seq__lte=at)
    open_rows = rows.filter(run__in=runs.values("id")).order_by("asked_seq")[:MAX_WAITING]
    requests = Event.objects.filter(conversation=conversation, seq__in=[row.asked_seq for row in open_rows])
    names = (parse(body.encode()).name for body in requests.order_by("seq").values_list("body", flat=True))
    return [hidden_characters.spelled_out((name or "a call")[:100]) for name in names]


def _words_of(conversation: Conversation, at: int) -> str | None:
    """Return the text that can be edited: that of a message at the fork; None if the event is not one."""
    event = Event.objects.filter(conversation=conversation, seq=at).first()
    return log.spoken_text(event.body) if event is not None and fork.is_changeable(event) else None


def _run(request: HttpRequest, conversation: Conversation) -> Run | None:
    name = request.GET.get("run", "")
    if not name:
        return None
    run = Run.objects.filter(id=name, conversation=conversation, parent_call=None, kind="agent").first()
    if run is None:
        raise NotFound("This conversation has no run with this ID.")
    return run


def _posted(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "").strip()[:2000]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")
