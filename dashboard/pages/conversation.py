"""One conversation: its page, further pages of entries, and the parts of it. GET and HEAD only."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations import deliveries, epoch, hues, log
from conversations.errors import NotFound
from conversations.models import Conversation
from dashboard.pages import composer, facts, graph, lanes, standings
from dashboard.pages.allowed import takes
from dashboard.pages.entries import entries_of
from dashboard.pages.frame import page as draw
from dashboard.pages.numbers_in import number

VIEWS = {"transcript": "conversation.html", "lanes": "lanes.html", "graph": "graph.html"}  # `?view=` → template


@require_safe
def conversation(request: HttpRequest, cid: str) -> HttpResponse:
    """Show the newest entries, or with `?event=N` those around event N.

    `?view=lanes` shows a column for each voice, `?view=graph` who spoke to whom (`&part=graph` that part alone).
    404 for an unknown conversation.
    """
    found = _find(cid)
    view = _view(request)
    if view == "graph":
        return _graph(request, found)
    event = min(number(request, "event") or 0, found.head_seq)
    page = log.page_around(cid, event) if event else log.newest_page(cid)
    drawn: dict[str, Any] = {"event": event, "page": page, "view": view, "epoch": epoch.current()}
    drawn |= {"lanes": lanes.lanes_of(page)} if view == "lanes" else {"entries": _drawn(found, page)}
    drawn["standing"] = standings.of(request, found)
    drawn["composer"] = composer.for_conversation(request, found)
    return draw(request, VIEWS[view], **drawn, **facts.of_conversation(found))


@require_safe
def entries(request: HttpRequest, cid: str) -> JsonResponse:
    """Answer the entries before or after a seq; without either the newest. `?view=lanes` answers cards for lanes.

    `{html, first, last, has_older, has_newer}`, and `{head, epoch}` to follow from when there is nothing newer.
    """
    found = _find(cid)
    before, after = number(request, "before"), number(request, "after")
    page = log.page_after(cid, after) if after is not None else log.page_before(cid, before)
    drawn = lanes.cards_alone(page) if _view(request) == "lanes" else _drawn(found, page)
    html = render_to_string("partials/entries.html", {"entries": drawn})
    bounds = {"first": page.first_seq, "last": page.last_seq, "has_older": page.has_older, "has_newer": page.has_newer}
    return JsonResponse({"html": html, **bounds, "head": page.head, "epoch": epoch.current()})


@require_safe
def panel(request: HttpRequest, cid: str) -> HttpResponse:
    """Answer the sections of the panel as they are now; with `?event=N` the facts of that event. Parts of a page."""
    found = _find(cid)
    seq = number(request, "event")
    if seq is None:
        return draw(request, "partials/panel.html", **facts.of_conversation(found))
    return draw(request, "partials/picked.html", **facts.of_one(found, seq))


@require_safe
def standing(request: HttpRequest, cid: str) -> HttpResponse:
    """Answer the bar over the transcript as it is now: who steers, and what the reader can do. A part of a page.

    `?of=SEQ&of=SEQ` asks what became of these messages.
    """
    found = _find(cid)
    seqs = [int(one) for one in request.GET.getlist("of")[: deliveries.MOST] if one.isdecimal() and len(one) < 19]
    told = list(deliveries.of(found, seqs).values())
    drawn: dict[str, Any] = {"standing": standings.of(request, found), "deliveries": told}
    drawn["again_s"] = min((one.again_s for one in told if one.again_s), default=0)
    return draw(request, "partials/standing_now.html", **drawn)


def _graph(request: HttpRequest, found: Conversation) -> HttpResponse:
    drawn: dict[str, Any] = {"graph": graph.graph_of(found)}
    if request.GET.get("part") == "graph":
        return draw(request, "partials/exchanges.html", **drawn)
    drawn |= {"view": "graph", "event": 0, "epoch": epoch.current(), "standing": standings.of(request, found)}
    return draw(request, VIEWS["graph"], **drawn, **facts.of_conversation(found))


def _view(request: HttpRequest) -> str:
    """Answer which view is asked for; an unknown one is the transcript."""
    asked = request.GET.get("view", "")
    return asked if asked in VIEWS else "transcript"


def _drawn(found: Conversation, page: log.Page) -> list[Markup]:
    sent = [event.seq for event in page.events if event.kind == "message"]
    return entries_of(page, deliveries.of(found, sent))


@require_safe
@takes("send")
def prospect(request: HttpRequest, cid: str) -> JsonResponse:
    """Answer `{words, waits}`: what becomes of words not sent yet, by `?as=` a sender and `?to=` an agent's name."""
    told = composer.prospect(
        request, _find(cid), sender=request.GET.get("as", "")[:200], recipient=request.GET.get("to", "").strip()[:200]
    )
    return JsonResponse(told._asdict())


def _find(key: str) -> Conversation:
    found = Conversation.objects.visible().filter(key=key).first()
    hues.refresh()
    if found is None:
        raise NotFound("No conversation has this id. It may be mistyped, or history went back.")
    return found
