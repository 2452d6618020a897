"""Quarantined messages, which could not be stored: the list, one message, and what can be done with it."""

from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations.access.audit import entry_facts
from conversations.core import hidden_characters, page_urls
from conversations.core.errors import NotAllowed, NotFound, SwitchboardError
from conversations.core.micros import to_datetime
from conversations.core.url_converters import row_number
from conversations.models import Quarantine
from conversations.models.quarantine import QuarantineQuerySet
from conversations.realtime.deployment import bounded
from conversations.rendering import hex_dump
from conversations.transport import quarantine
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission

PAGE = 50  # rows


class QuarantineRow(NamedTuple):
    """One message in the list; every text is escaped."""

    number: int
    at: datetime
    source: str
    reason: str
    start: str
    size: int
    outcome: str


@require_permission("quarantine")
@require_safe
def entries(request: HttpRequest) -> HttpResponse:
    """List the waiting messages, or with `?settled=yes` the others; `?q=` searches stream and reason, `?before=`
    pages."""
    q, settled = request.GET.get("q", "").strip()[:200], request.GET.get("settled") == "yes"
    messages = Quarantine.objects.settled() if settled else Quarantine.objects.open()
    chosen = messages.matching(q)
    before = row_number(request.GET.get("before", ""))
    rows = rows_of(chosen.filter(pk__lt=before) if before else chosen, PAGE + 1)
    shown: dict[str, Any] = {"q": q, "settled": settled, "before": before, "rows": rows[:PAGE]}
    shown["older_href"] = _href(q, settled, rows[PAGE - 1].number) if len(rows) > PAGE else ""
    shown |= {"newest_href": _href(q, settled), "all_href": _href("", settled)}
    return render_page(request, "quarantine.html", count=bounded(chosen), **shown)


@require_permission("quarantine")
@require_safe
def entry(request: HttpRequest, number: int) -> HttpResponse:
    """Show one message: its origin, the reason, its bytes, and what was done with it."""
    return _draw(request, number)


@require_permission("quarantine")
@require_POST
def redrives(request: HttpRequest, number: int) -> HttpResponse:
    """Retry a message."""
    try:
        quarantine.redrive(request.user, number, conversation=request.POST.get("conversation", ""))
    except SwitchboardError as error:
        return _draw(request, number, error, verb="redrive")
    return HttpResponseRedirect(reverse("quarantined", args=[number]))


@require_permission("quarantine")
@require_POST
def discards(request: HttpRequest, number: int) -> HttpResponse:
    """Discard a message; with `alike` also the oldest 200 like it."""
    act = quarantine.discard_alike if request.POST.get("alike") == "yes" else quarantine.discard
    try:
        act(request.user, number, request.POST.get("reason", ""))
    except SwitchboardError as error:
        return _draw(request, number, error, verb="discard")
    return HttpResponseRedirect(reverse("quarantined", args=[number]))


def rows_of(chosen: QuarantineQuerySet, most: int) -> list[QuarantineRow]:
    """Return the newest `most` messages as rows; of each message only the beginning is read."""
    messages = chosen.order_by("-id").previewed()[:most]
    return [
        QuarantineRow(
            row.pk,
            to_datetime(row.at),
            hidden_characters.spelled_out(row.source),
            hidden_characters.spelled_out(row.reason[:300]),
            hex_dump.line(bytes(row.start)),  # type: ignore[attr-defined]  # annotated by `previewed`
            row.size,
            row.outcome or "",
        )
        for row in messages
    ]


def _draw(request: HttpRequest, number: int, error: SwitchboardError | None = None, *, verb: str = "") -> HttpResponse:
    """Show one message, with an error above it. Errors 401, 403 and 404 have pages of their own."""
    if isinstance(error, NotAllowed | NotFound):
        raise error
    row = quarantine.find(number)
    return render_page(
        request,
        "quarantined.html",
        status=status_of(error),
        one=row,
        at=to_datetime(row.at),
        source=hidden_characters.spelled_out(row.source),
        why=hidden_characters.spelled_out(row.reason),
        where=hidden_characters.spelled_out(row.conversation or ""),
        where_href=_conversation_href(row.conversation),
        drawn=hex_dump.draw(bytes(row.raw), is_whole=not row.is_truncated),
        kept=len(row.raw),
        lacks_conversation=row.outcome is None and quarantine.lacks_conversation(row),
        alike=bounded(quarantine.alike(row)),
        next=Quarantine.objects.open().order_by("-id").values_list("pk", flat=True).first(),
        at_once=quarantine.AT_ONCE,
        settled=_settlement(row),
        error=hidden_characters.spelled_out(error.sentence) if error else "",
        verb=verb,
        entered={"conversation": request.POST.get("conversation", ""), "reason": request.POST.get("reason", "")},
    )


def _settlement(row: Quarantine) -> dict[str, Any] | None:
    """Return who settled a message, when, why, and where a retried one went; None while it waits."""
    entry = quarantine.settlement(row.pk) if row.outcome else None
    if entry is None:
        return None
    correlation = entry_facts.parse(entry.correlation)
    conversation, seq = correlation.get("conversation") or "", correlation.get("seq") or 0
    return {
        "by": entry.principal,
        "at": to_datetime(entry.at),
        "reason": hidden_characters.spelled_out(entry.reason),
        "conversation": hidden_characters.spelled_out(conversation),
        "seq": seq,
        "href": page_urls.event_url(conversation, seq) if conversation else "",
    }


def _conversation_href(key: str | None) -> str:
    return reverse("conversation", args=[key]) if key else ""


def _href(q: str, settled: bool, before: int = 0) -> str:
    params = {"q": q, "settled": "yes" if settled else "", "before": before}
    return reverse("quarantine", query={name: value for name, value in params.items() if value})
