"""The outline of a conversation: turns, agents, approvals and failures, page by page. Called by the conversation
page."""

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations.events.log import outline_reads
from conversations.models import Conversation
from conversations.rendering import agent_colors, outline_rows
from conversations.rendering.outline_rows import OutlineRow
from dashboard.pages.address import conversation_of, number_of
from dashboard.pages.base_context import render_page


class Outline(NamedTuple):
    """Rows from event `start` to `end`; `first` is the first event that was read."""

    rows: list[OutlineRow]
    first: int
    start: int
    end: int
    head: int
    has_earlier: bool
    has_later: bool


@require_safe
def outline(request: HttpRequest, cid: str) -> HttpResponse:
    """Return a page of the outline: `?before=`, `?after=` or around `?event=`, else the end. A part of the page."""
    row = conversation_of(cid)
    agent_colors.refresh_colors()
    return render_page(request, "partials/outline.html", outline=_outline_of(request, row))


def _outline_of(request: HttpRequest, row: Conversation) -> Outline:
    place = row.pk, row.key, row.head_seq
    before, after = number_of(request, "before"), number_of(request, "after")
    if before is not None:
        page = outline_reads.before(*place, before)
    elif after is not None:
        page = outline_reads.after(*place, after)
    else:
        page = outline_reads.around(*place, number_of(request, "event") or row.head_seq + 1)
    start, end = (page.events[0].seq, page.events[-1].seq) if page.events else (0, 0)
    drawn = outline_rows.rows_of(page.events)
    return Outline(drawn, page.first, start, end, row.head_seq, page.has_earlier, page.has_later)
