"""One conversation: its page, further entries, and parts of the page that reload. GET and HEAD only."""

from contextlib import AbstractContextManager, nullcontext
from threading import BoundedSemaphore
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations.conversation import delivery_status, reading_position
from conversations.conversation.delivery_preview import DeliveryPreview
from conversations.core.errors import NotFound
from conversations.core.url_converters import row_number
from conversations.events import epoch, log
from conversations.events.log import token_rows
from conversations.models import Conversation
from conversations.telemetry import late_names
from dashboard.pages import (
    approval_card,
    composer,
    control_panel,
    conversation_sidebar,
    graph,
    lane_overview,
    lanes,
    playhead,
    timeline,
)
from dashboard.pages.address import conversation_of, number_of
from dashboard.pages.agent_hues import use_hues_of, with_agent_hues
from dashboard.pages.base_context import render_page
from dashboard.pages.conversation_entries import Notes, entries_of, notes_of
from dashboard.pages.row_separators import separated
from dashboard.require_permission import require_permission

PARTS = {"graph": "partials/conversation_graph.html", "timeline": "partials/conversation_timeline.html"}
LARGE = 256 << 10  # characters of the bodies of a page
_drawing_large = BoundedSemaphore(2)
VIEWS = {  # `?view=` → template
    "transcript": "conversation.html",
    "lanes": "lanes.html",
    "timeline": "timeline.html",
    "graph": "graph.html",
}


@require_safe
@with_agent_hues
def conversation(request: HttpRequest, cid: str) -> HttpResponse:
    """Show the newest entries, or, if it has ended, the first or first unread ones; with `?event=N` those around event
    N.

    `?view=lanes` shows a column per participant, `?view=timeline` runs, calls and waits along time, `?view=graph` who
    spoke to whom. With `&part=` the timeline and the graph return only that part, the lanes only their overview strip;
    with `&at=N` every view shows the state after event N. 404 for an unknown conversation; one that was moved redirects
    to its new id.
    """
    try:
        row = _find(cid)
    except NotFound:
        if place := late_names.moved_to(cid):
            return redirect("conversation", place)
        raise
    view = _view(request)
    if view in PARTS:
        return _part(request, row, view)
    if view == "lanes" and request.GET.get("part") == "overview":
        return render_page(request, "partials/lane_overview.html", overview=lane_overview.overview_of(row))
    at = playhead.seq_of(request, row)
    event = _event_of(request, row, at)
    start = 0 if event or at else reading_position.first_shown(row, request.user)
    page = log.past_page(cid, at, event=min(event, at)) if at else _page_of(cid, event or start)
    with _limit_large(page):
        return _page(request, row, page, {"view": view, "event": event, "start": start, "at": at})


def _page_of(cid: str, seq: int) -> log.EventWindow:
    """Read the window around an event, from the first event on, or (0) the newest."""
    if seq > 1:
        return log.page_around(cid, seq)
    return log.page_after(cid, 0) if seq else log.newest_page(cid)


def _page(request: HttpRequest, row: Conversation, page: log.EventWindow, place: dict[str, Any]) -> HttpResponse:
    view = place["view"]
    drawn: dict[str, Any] = {"page": page, "epoch": epoch.current(), **place}
    at = place["at"]
    drawn |= (
        {"lanes": lanes.lanes_of(page, _notes(row, page, at), place["event"] or place["start"])}
        if view == "lanes"
        else {"entries": separated(_drawn(request, row, page, at))}
    )
    drawn["standing"] = control_panel.panel_of(request, row)
    drawn["moment"] = playhead.moment_at(request, row, at) if at else None
    drawn["picked"] = conversation_sidebar.event_facts(row, place["event"], request.user) if place["event"] else None
    drawn["composer"] = None if at else composer.for_conversation(request, row)
    try:
        return render_page(request, VIEWS[view], **drawn, **conversation_sidebar.panel_context(row))
    finally:
        _free_memory_of(page, drawn.get("entries", []))


@require_safe
@with_agent_hues
def entries(request: HttpRequest, cid: str) -> JsonResponse:
    """Return the entries before or after an event number, or the newest; `?view=lanes` returns cards for lanes.

    JSON: `{html, first, last, has_older, has_newer, head, epoch}`; `head` and `epoch` are where to follow from once
    there is nothing newer.
    """
    row = _find(cid)
    before, after = number_of(request, "before"), number_of(request, "after")
    at = playhead.seq_of(request, row)
    page = _further(cid, before, after, at)
    is_lanes = _view(request) == "lanes"
    with _limit_large(page):
        drawn = lanes.cards_alone(page, _notes(row, page, at)) if is_lanes else _drawn(request, row, page, at)
        html = render_to_string("partials/transcript_entries.html", {"entries": drawn})
        _free_memory_of(page, drawn)
    bounds = {"first": page.first_seq, "last": page.last_seq, "has_older": page.has_older, "has_newer": page.has_newer}
    return JsonResponse({"html": html, **bounds, "head": page.head, "epoch": epoch.current()})


def _further(cid: str, before: int | None, after: int | None, at: int) -> log.EventWindow:
    if at:
        return log.past_page(cid, at, before=before, event=min(after + 1, at) if after is not None else 0)
    return log.page_after(cid, after) if after is not None else log.page_before(cid, before)


@require_safe
@with_agent_hues
def panel(request: HttpRequest, cid: str) -> HttpResponse:
    """Return the sections of the panel as they are now, or with `?event=N` the facts of that event. A part of the
    page."""
    row = _find(cid)
    seq = number_of(request, "event")
    if seq is None:
        return render_page(request, "partials/panel.html", **conversation_sidebar.panel_context(row))
    return render_page(request, "partials/picked.html", **conversation_sidebar.event_facts(row, seq, request.user))


@require_safe
@with_agent_hues
def standing(request: HttpRequest, cid: str) -> HttpResponse:
    """Return the head of a conversation as it is now: its state and the reader's control actions. A part of the page.

    `?of=SEQ&of=SEQ` adds the delivery of these messages, `?as=…&to=…&when=…` what would happen to a message not sent
    yet (as `prospect`), and `?panel=1` the panel.
    """
    row = _find(cid)
    seqs = [row_number(text) for text in request.GET.getlist("of")[: delivery_status.MAX_MESSAGES]]
    deliveries = list(delivery_status.statuses_for(row, seqs).values())
    drawn: dict[str, Any] = {
        "conversation": row,
        "name": conversation_sidebar.name_of(row),
        "standing": control_panel.panel_of(request, row),
        "deliveries": deliveries,
    }
    drawn["again_s"] = min((item.again_s for item in deliveries if item.again_s), default=0)
    drawn["prospect"] = _prospect(request, row) if "to" in request.GET and composer.may_speak(request) else None
    drawn["has_panel"] = request.GET.get("panel") == "1"
    if drawn["has_panel"]:
        drawn |= conversation_sidebar.panel_context(row)
    return render_page(request, "partials/control_panel_state.html", **drawn)


def _limit_large(page: log.EventWindow) -> AbstractContextManager[object]:
    """Limit how many large pages are drawn at a time: each needs several times its own size, and more at once are no
    faster."""
    size = sum(len(event.body) for event in (*page.events, *page.open_tokens))
    return _drawing_large if size > LARGE else nullcontext()


def _free_memory_of(page: log.EventWindow, drawn: list[Markup]) -> None:
    """Free the memory of a page that has been rendered: templates leave reference cycles, which are collected much
    later."""
    for items in (page.events, page.open_tokens, page.calls, drawn):
        items.clear()


def _part(request: HttpRequest, row: Conversation, view: str) -> HttpResponse:
    """Show a view that is drawn as a whole; with `&part=` return only that part."""
    at = playhead.seq_of(request, row)
    event = _event_of(request, row, at)
    is_alone = request.GET.get("part") == view
    drawn: dict[str, Any] = (
        {"graph": _graph(request, row, event, at)}
        if view == "graph"
        else {"chart": _timeline(request, row, event, at, timeline.ROWS if is_alone else timeline.FIRST_ROWS)}
    )
    drawn |= {"at": at, "event": event}
    if is_alone:
        return render_page(request, PARTS[view], **drawn)
    drawn["picked"] = conversation_sidebar.event_facts(row, event, request.user) if event else None
    drawn["moment"] = playhead.moment_at(request, row, at) if at else None
    drawn |= {"view": view, "epoch": epoch.current(), "standing": control_panel.panel_of(request, row)}
    return render_page(request, VIEWS[view], **drawn, **conversation_sidebar.panel_context(row))


def _graph(request: HttpRequest, row: Conversation, event: int, at: int) -> graph.InteractionPage:
    return graph.graph_of(row, at=at, event=event, whole=request.GET.get("whole") == "1")


def _timeline(request: HttpRequest, row: Conversation, event: int, at: int, rows: int) -> timeline.TimelinePage:
    failures = request.GET.get("failures") == "1"
    start = number_of(request, "from")
    return timeline.timeline_of(row, start=start, event=event, failures=failures, at=at, rows=rows)


def _event_of(request: HttpRequest, row: Conversation, at: int) -> int:
    """Return the event that is asked for, of a token the one in whose row it is drawn; 0 for none."""
    event = min(number_of(request, "event") or 0, row.head_seq)
    return token_rows.row_of(row, event, at or row.head_seq) if event else 0


def _view(request: HttpRequest) -> str:
    """Return which view is asked for; the transcript if it is unknown."""
    view = request.GET.get("view", "")
    return view if view in VIEWS else "transcript"


def _drawn(request: HttpRequest, row: Conversation, page: log.EventWindow, at: int) -> list[Markup]:
    notes = _notes(row, page, at)
    if at:  # nothing is done in the past
        return entries_of(page, notes=notes)
    sent = [event.seq for event in page.events if event.kind == "message"]
    return approval_card.with_forms(request, entries_of(page, delivery_status.statuses_for(row, sent), notes))


def _notes(row: Conversation, page: log.EventWindow, at: int) -> Notes:
    return notes_of(row.pk, page, upto=at or page.head)


@require_safe
@require_permission("send")
@with_agent_hues
def prospect(request: HttpRequest, cid: str) -> JsonResponse:
    """Return `{words, waits, at_work}`: what would happen to a message not sent yet, by `?as=` (a sender), `?to=` (an
    agent's name) and `?when=`; `at_work` is the agent that would get it at its next step."""
    return JsonResponse(_prospect(request, _find(cid))._asdict())


def _prospect(request: HttpRequest, row: Conversation) -> DeliveryPreview:
    sender, to, when = (request.GET.get(name, "").strip()[:200] for name in ("as", "to", "when"))
    return composer.prospect(request, row, sender=sender, recipient=to, when=when)


def _find(key: str) -> Conversation:
    row = conversation_of(key)
    use_hues_of(row)
    return row
