"""The print view of a conversation: its entries from the beginning, with results unfolded and without navigation."""

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations.core.hidden_characters import spelled_out
from conversations.core.html_escape import safe
from conversations.events import log
from conversations.models import Conversation
from conversations.rendering import agent_colors
from dashboard.pages.address import conversation_of, number_of
from dashboard.pages.base_context import render_page
from dashboard.pages.conversation_entries import entries_of, notes_of

MAX_ENTRIES = 1_000  # entries of one document
PAGE = 200  # entries of one read
_FOLDED = re.compile(r'<details(?! open)(?! class="(?:disclosed|way)\b)')


@require_safe
def printed(request: HttpRequest, cid: str) -> HttpResponse:
    """Show up to a thousand entries after `?after=`, and say which events these are and what is left out.

    404 for an unknown conversation.
    """
    row = conversation_of(cid)
    agent_colors.refresh_colors()
    after = number_of(request, "after") or 0
    entries, last = _entries(row, after)
    drawn: dict[str, Any] = {"conversation": row, "name": spelled_out(row.title or row.key), "entries": entries}
    return render_page(
        request, "conversation_print.html", **drawn, first=after + 1, last=last, key=spelled_out(row.key)
    )


def _entries(row: Conversation, after: int) -> tuple[list[Markup], int]:
    """Draw entries, window by window; return them and the number of the last event."""
    entries: list[Markup] = []
    last = after
    while len(entries) < MAX_ENTRIES:
        page = log.page_after(row.key, last, min(PAGE, MAX_ENTRIES - len(entries)))
        notes = notes_of(row.pk, page, upto=page.head)
        entries += [_unfolded(entry) for entry in entries_of(page, notes=notes)]
        last = page.last_seq
        if not page.has_newer:
            break
    return entries, last


def _unfolded(entry: Markup) -> Markup:
    """Unfold all but raw fields and forms. Text of people and agents cannot contain this markup: it is escaped."""
    return safe(_FOLDED.sub("<details open", str(entry)))
