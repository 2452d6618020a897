"""Messages that could not be stored: the list, one of them, and what a person does with it."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from conversations import links
from conversations.actions import quarantine as actions
from conversations.addresses import row_number
from conversations.errors import NotAllowed, NotFound, SwitchboardError
from conversations.fragments import hidden, raw
from conversations.models import Quarantine
from conversations.models.redis import QuarantineQuerySet
from conversations.ops import bounded
from dashboard.pages.allowed import takes
from dashboard.pages.errors import status_of
from dashboard.pages.frame import page

PAGE = 50  # rows


class Row(NamedTuple):
    """One message of a list; every text is fit for text and attributes."""

    number: int
    at: datetime
    source: str
    reason: str
    start: str
    size: int
    outcome: str


@takes("quarantine")
@require_safe
def entries(request: HttpRequest) -> HttpResponse:
    """List the open ones, or with `?settled=yes` the others; `?q=` searches stream and reason, `?before=` pages."""
    q, settled = request.GET.get("q", "").strip()[:200], request.GET.get("settled") == "yes"
    kept = Quarantine.objects.settled() if settled else Quarantine.objects.open()
    chosen = kept.matching(q)
    before = row_number(request.GET.get("before", ""))
    rows = rows_of(chosen.filter(pk__lt=before) if before else chosen, PAGE + 1)
    shown: dict[str, Any] = {"q": q, "settled": settled, "before": before, "rows": rows[:PAGE]}
    shown["older_href"] = _href(q, settled, rows[PAGE - 1].number) if len(rows) > PAGE else ""
    shown |= {"newest_href": _href(q, settled), "all_href": _href("", settled)}
    return page(request, "quarantine.html", count=bounded(chosen), **shown)


@takes("quarantine")
@require_safe
def entry(request: HttpRequest, number: int) -> HttpResponse:
    """Show one: where it came from, why it is here, its bytes, and what became of it."""
    return _draw(request, number)


@takes("quarantine")
@require_POST
def redrives(request: HttpRequest, number: int) -> HttpResponse:
    """Read it again."""
    try:
        actions.redrive(request.user, number, conversation=request.POST.get("conversation", ""))
    except SwitchboardError as error:
        return _draw(request, number, error, verb="redrive")
    return HttpResponseRedirect(reverse("quarantined", args=[number]))


@takes("quarantine")
@require_POST
def discards(request: HttpRequest, number: int) -> HttpResponse:
    """Discard it; with `alike` the oldest 200 like it."""
    act = actions.discard_alike if request.POST.get("alike") == "yes" else actions.discard
    try:
        act(request.user, number, request.POST.get("reason", ""))
    except SwitchboardError as error:
        return _draw(request, number, error, verb="discard")
    return HttpResponseRedirect(reverse("quarantined", args=[number]))


def rows_of(chosen: QuarantineQuerySet, most: int) -> list[Row]:
    """Answer the newest `most` as rows of a list; of each message only the beginning is read."""
    found = chosen.order_by("-id").previewed()[:most]
    return [
        Row(
            one.pk,
            _moment(one.at),
            hidden.spell(one.source),
            hidden.spell(one.reason[:300]),
            raw.line(bytes(one.start)),  # type: ignore[attr-defined]  # annotated by `previewed`
            one.size,
            one.outcome or "",
        )
        for one in found
    ]


def _draw(request: HttpRequest, number: int, error: SwitchboardError | None = None, *, verb: str = "") -> HttpResponse:
    """Draw one; what an action refused is told on top. 401, 403 and 404 are pages of their own."""
    if isinstance(error, NotAllowed | NotFound):
        raise error
    found = actions.find(number)
    return page(
        request,
        "quarantined.html",
        status=status_of(error),
        one=found,
        at=_moment(found.at),
        source=hidden.spell(found.source),
        why=hidden.spell(found.reason),
        where=hidden.spell(found.conversation or ""),
        where_href=_conversation_href(found.conversation),
        drawn=raw.draw(bytes(found.raw), is_whole=not found.is_truncated),
        kept=len(found.raw),
        lacks_conversation=found.outcome is None and actions.lacks_conversation(found),
        alike=bounded(actions.alike(found)),
        next=Quarantine.objects.open().order_by("-id").values_list("pk", flat=True).first(),
        at_once=actions.AT_ONCE,
        settled=_settlement(found),
        error=hidden.spell(error.message) if error else "",
        verb=verb,
        entered={"conversation": request.POST.get("conversation", ""), "reason": request.POST.get("reason", "")},
    )


def _settlement(found: Quarantine) -> dict[str, Any] | None:
    """Answer who settled it, when, why, and where a re-driven one went."""
    entry = actions.settlement(found.pk) if found.outcome else None
    if entry is None:
        return None
    told = json.loads(entry.correlation or "{}")
    place, seq = told.get("conversation") or "", told.get("seq") or 0
    return {
        "by": entry.principal,
        "at": _moment(entry.at),
        "reason": hidden.spell(entry.reason),
        "conversation": hidden.spell(place),
        "seq": seq,
        "href": links.of_event(place, seq) if place else "",
    }


def _conversation_href(key: str | None) -> str:
    return reverse("conversation", args=[key]) if key else ""


def _href(q: str, settled: bool, before: int = 0) -> str:
    asked = {"q": q, "settled": "yes" if settled else "", "before": before}
    query = urlencode({name: value for name, value in asked.items() if value})
    return reverse("quarantine") + (f"?{query}" if query else "")


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)
