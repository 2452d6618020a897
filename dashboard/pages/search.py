"""The search page: every conversation's words, newest first; each hit opens its event in context."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations import hues, links, log, search
from conversations.errors import Invalid
from conversations.fragments import faces, hidden, richtext
from conversations.fragments.who import Who, who
from conversations.models import Agent
from dashboard.pages.allowed import takes
from dashboard.pages.frame import page as draw

PAGE = 25  # hits
MOST_NAMES = 50  # offered by the sender field
FIELDS = ("q", "kind", "sender", "conversation", "since", "until")
KINDS = {
    "message": "Messages",
    "output": "Answers of agents",
    "tool_step": "Tool calls",
    "approval": "Approvals",
    "error": "Errors",
    "run": "Runs",
    "conversation": "Titles and steering",
    "operator": "Notes",
    "log": "Logs",
}
_WORDS = {
    "tool_step": "tool call", "output": "answer", "conversation.opened": "title", "operator.note": "note",
    "approval.requested": "question", "approval.decided": "decision", "replay.requested": "replay",
}  # fmt: skip
_BROADER = {
    "kind": "every kind of event",
    "sender": "what anybody said",
    "conversation": "every conversation",
    "since": "what was before, too",
    "until": "what came after, too",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A hit, ready to draw."""

    hit: search.Hit
    face: Who
    kind: str
    excerpts: list[search.Excerpt]
    tool: Markup  # the tool's name, where it is a step of a call
    call: str  # the address of the call's own page; empty: it has none

    @property
    def caption(self) -> str:
        """What its conversation is called, fit for text."""
        return richtext.inline(self.hit.title or self.hit.event.conversation)

    @property
    def href(self) -> str:
        """Where it stands in context."""
        return links.of_event(self.hit.event.conversation, self.hit.event.seq)

    @property
    def at(self) -> datetime:
        """When it was recorded."""
        return _moment(self.hit.event.at)


@require_safe
@takes("view")
def find(request: HttpRequest) -> HttpResponse:
    """Show the newest hits of `?q=`, `?kind=`, `?sender=`, `?conversation=`, `?since=`, `?until=`; `?before=` pages."""
    told = {name: request.GET.get(name, "").strip() for name in FIELDS}
    before, query, error = request.GET.get("before", ""), search.Query(), None
    found = search.Found((), None)
    try:
        query = search.read(**told)
        found = search.find(query, before=before, limit=PAGE)
    except Invalid as wrong:
        error = wrong
    hues.refresh()
    return draw(
        request, "search.html", status=400 if error else 200, told=told, query=query, kinds=_kinds(told["kind"]),
        lines=_lines(found.hits, query), is_first=not before, lag=search.lag(),
        error=hidden.spell(error.message) if error else "", error_field=error.field if error else "",
        older=_href(told, found.cursor) if found.cursor else "", newest=_href(told),
        looked_to=_moment(found.looked_to) if found.looked_to else None,
        broader=[(words, _href(told | {name: ""})) for name, words in _BROADER.items() if told[name]],
        senders=[name for name in _agents() if hidden.is_clean(name)],
    )  # fmt: skip


def _agents() -> Iterable[str]:
    return Agent.objects.order_by("name").values_list("name", flat=True).distinct()[:MOST_NAMES]


def _lines(hits: Sequence[search.Hit], query: search.Query) -> list[Line]:
    calls = log.call_ids([hit.event for hit in hits if hit.event.kind in log.STEPS])
    return [
        _line(hit, cut, calls.get((hit.event.conversation, hit.event.seq), ""))
        for hit, cut in zip(hits, search.of_hits(hits, query), strict=True)
    ]


def _line(hit: search.Hit, cut: list[search.Excerpt], call: str = "") -> Line:
    event = hit.event
    said = faces.read(event).said
    kind = hidden.spell(_WORDS.get(event.kind, event.kind))
    name = (said.name or "the call")[:200] if event.kind in log.STEPS else ""
    href = reverse("call", args=[call]) if call else ""
    face = who(said.speaker or event.principal, event.principal)
    return Line(hit, face, kind, cut, richtext.inline(name), href)


def _kinds(asked: str) -> dict[str, str]:
    return KINDS if not asked or asked in KINDS else KINDS | {asked: hidden.spell(asked[:64])}


def _href(told: dict[str, str], before: str = "") -> str:
    query = urlencode({name: value for name, value in {**told, "before": before}.items() if value})
    return reverse("search") + (f"?{query}" if query else "")


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0), 253_402_300_799_000_000) / 1e6, UTC)
