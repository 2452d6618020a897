"""One conversation: its page, further pages of entries, and the panel beside it. GET and HEAD only."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from conversations import epoch, log
from conversations.errors import NotFound
from conversations.log import Page
from conversations.models import Conversation, Event, Participant
from dashboard.pages.entries import blank_turn, entries_of

MAX_SEQ = (1 << 63) - 1
VOICES = 60  # of a conversation, in the panel


class Voice(NamedTuple):
    """Somebody who spoke or was spoken to. `kind`: agent, person or system."""

    name: str
    kind: str

    @property
    def short(self) -> str:
        """The name without `agent:` or `user:`."""
        prefix, mark, rest = self.name.partition(":")
        return rest if mark and prefix in ("agent", "user", "system") and rest else self.name


@require_safe
def conversation(request: HttpRequest, cid: str) -> HttpResponse:
    """Show the newest entries, or with `?event=N` those around event N. 404 for an unknown conversation."""
    found = _find(cid)
    event = min(_number(request, "event") or 0, found.head_seq)
    page = log.page_around(cid, event) if event else log.newest_page(cid)
    context = {"conversation": found, "event": event, "page": page, "entries": entries_of(page), "turn": blank_turn()}
    return render(request, "conversation.html", context | _panel(found) | {"epoch": epoch.current()})


@require_safe
def entries(request: HttpRequest, cid: str) -> JsonResponse:
    """Answer the entries before or after a seq, without either the newest: `{html, first, last, has_older, has_newer}`,
    `head` and `epoch` to follow on from."""
    _find(cid)
    before, after = _number(request, "before"), _number(request, "after")
    page = log.page_after(cid, after) if after is not None else log.page_before(cid, before)
    html = render_to_string("partials/entries.html", {"entries": entries_of(page)})
    return JsonResponse({"html": html, "first": page.first_seq, "epoch": epoch.current()} | _bounds(page))


@require_safe
def panel(request: HttpRequest, cid: str) -> HttpResponse:
    """Answer the sections of the panel as they are now."""
    return render(request, "partials/panel.html", _panel(_find(cid)))


def _find(key: str) -> Conversation:
    try:
        return Conversation.objects.visible().get(key=key)
    except Conversation.DoesNotExist:
        raise Http404(f"no conversation {key!r}") from None


def _number(request: HttpRequest, name: str) -> int | None:
    """Read a seq of the query; what is no seq counts as absent, so that a mangled link still opens the page."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _bounds(page: Page) -> dict[str, Any]:
    return {"last": page.last_seq, "head": page.head, "has_older": page.has_older, "has_newer": page.has_newer}


def _panel(found: Conversation) -> dict[str, Any]:
    names = Participant.objects.filter(conversation=found).order_by("name").values_list("name", "kind")
    opened = Event.objects.filter(conversation=found, seq=1).values_list("at", flat=True).first()
    return {
        "conversation": found,
        "voices": [Voice(*row) for row in names[:VOICES]],
        "opened_at": datetime.fromtimestamp(opened / 1e6, UTC) if opened else None,
    }
