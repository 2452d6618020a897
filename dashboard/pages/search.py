"""The search page: the texts of every conversation, newest first; each hit opens its event in context."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations import search
from conversations.core import hidden_characters, page_urls
from conversations.core.errors import Invalid
from conversations.core.micros import nearest_datetime
from conversations.events import log, registry
from conversations.models import Agent
from conversations.rendering import agent_colors, event_rows, richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from dashboard.pages.base_context import render_page
from dashboard.require_permission import require_permission

PAGE = 25  # hits
MAX_NAMES = 50  # offered by the sender field
FIELDS = ("q", "kind", "sender", "conversation", "since", "until")
KINDS = {**registry.search_filters(), "thumb.up": "Thumbs up", "thumb.down": "Thumbs down", "error": "Errors"}
THUMBS = {"up": "thumbs up", "down": "thumbs down", "": "thumb withdrawn"}
_BROADER = {
    "kind": "all event types",
    "sender": "all senders",
    "conversation": "all conversations",
    "since": "earlier dates too",
    "until": "later dates too",
}


@dataclass(frozen=True, slots=True)
class HitLine:
    """A search hit, ready to draw."""

    hit: search.SearchHit
    mark: ParticipantMark
    kind: str
    excerpts: list[search.Excerpt]
    tool: Markup  # the tool's name, where it is a step of a call
    call: str  # the address of the call's own page; empty: it has none
    about: int = 0  # the event that a note or thumb is about
    rated: ParticipantMark | None = None  # who said or did that

    @property
    def about_href(self) -> str:
        """Return the address of that event in context."""
        return page_urls.event_url(self.hit.event.conversation, self.about)

    @property
    def caption(self) -> str:
        """Return the conversation's title or id, escaped."""
        return richtext.inline(self.hit.title or self.hit.event.conversation)

    @property
    def href(self) -> str:
        """Return the address of the event in context."""
        return page_urls.event_url(self.hit.event.conversation, self.hit.event.seq)

    @property
    def at(self) -> datetime:
        """Return when the event was recorded."""
        return nearest_datetime(self.hit.event.at)


@require_safe
@require_permission("view")
def find(request: HttpRequest) -> HttpResponse:
    """Show the newest hits of `?q=`, `?kind=`, `?sender=`, `?conversation=`, `?since=`, `?until=`; `?before=` pages."""
    fields = {name: request.GET.get(name, "").strip() for name in FIELDS}
    before, query, error = request.GET.get("before", ""), search.Query(), None
    page, lag = search.SearchPage((), None), search.lag()  # counted before: what is indexed meanwhile is among the hits
    try:
        query = search.read(**fields)
        page = search.find(query, before=before, limit=PAGE)
    except Invalid as wrong:
        error = wrong
    agent_colors.refresh_colors()
    return render_page(
        request, "search.html", status=400 if error else 200, told=fields, query=query, kinds=_kinds(fields["kind"]),
        lines=_lines(page.hits, query), is_first=not before, lag=lag,
        error=hidden_characters.spelled_out(error.sentence) if error else "", error_field=error.field if error else "",
        older=_href(fields, page.cursor) if page.cursor else "", newest=_href(fields),
        looked_to=nearest_datetime(page.looked_to) if page.looked_to else None,
        broader=[(label, _href(fields | {name: ""})) for name, label in _BROADER.items() if fields[name]],
        senders=[name for name in _agents() if hidden_characters.is_clean(name)],
    )  # fmt: skip


def _agents() -> Iterable[str]:
    return Agent.objects.order_by("name").values_list("name", flat=True).distinct()[:MAX_NAMES]


def _lines(hits: Sequence[search.SearchHit], query: search.Query) -> list[HitLine]:
    calls = log.call_ids([hit.event for hit in hits if hit.event.kind in log.STEPS])
    return [
        _line(hit, cut, calls.get((hit.event.conversation, hit.event.seq), ""))
        for hit, cut in zip(hits, search.of_hits(hits, query), strict=True)
    ]


def _line(hit: search.SearchHit, cut: list[search.Excerpt], call: str = "") -> HitLine:
    event = hit.event
    read = event_rows.parse_event(event)
    parsed = read.payload
    known = registry.declared(event.kind)
    kind = hidden_characters.spelled_out((known.search.label if known else "") or event.kind)
    name = (parsed.name or "the call")[:200] if event.kind in log.STEPS else ""
    href = reverse("call", args=[call]) if call else ""
    mark = mark_for(event_rows.author(read) or event.principal, event.principal)
    about = read.body.get("about") if known and "shown_under_event" in known.traits else 0
    if about:
        kind = THUMBS.get(str(read.body.get("thumb", "none")), kind)
    speaker = event_rows.line(read.body.get("speaker")) if about else ""
    line = HitLine(hit, mark, kind, cut, richtext.inline(name), href, about if type(about) is int else 0)
    return replace(line, rated=mark_for(speaker) if speaker else None)


def _kinds(kind: str) -> dict[str, str]:
    return KINDS if not kind or kind in KINDS else KINDS | {kind: hidden_characters.spelled_out(kind[:64])}


def _href(fields: dict[str, str], before: str = "") -> str:
    return reverse("search", query={name: value for name, value in {**fields, "before": before}.items() if value})
