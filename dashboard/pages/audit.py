"""The audit log page: entries newest first, with filters in the address; its hash chain, verified piece by piece. It
works without scripts; `static/js/audit-log.js` only avoids reloads. An entry about a call (`call:ID`) links to
the call's page, which replays it: `call_page.py`."""

from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.access import permissions
from conversations.access.audit import reveal
from conversations.access.audit.listing import query as listing
from conversations.access.audit.listing import verify_step
from conversations.access.audit.listing.export import EXPORT
from conversations.access.audit.listing.filters import AuditFilters
from conversations.access.audit.listing.rows import datetime_of, rows
from conversations.core import hidden_characters
from conversations.core.errors import Conflict, NotFound
from conversations.evidence import background_check, verify_record
from conversations.evidence import state as signed_state
from conversations.models import AuditEntry, AuditHead
from conversations.redaction import audit_entries
from conversations.rendering import richtext
from conversations.rendering.participant_marks import mark_for
from dashboard.pages.address import number_of
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.pages.filtered_lists import PAGE, FilteredList
from dashboard.require_permission import require_permission

NEWEST = 1_000  # entries whose names are offered to filter by
SHOWN = 6  # of each kind of names, the most frequent
NAMES = {
    "who": "Who", "acting_as": "Acting as", "verb": "Did", "outcome": "Outcome", "target": "To what",
    "conversation": "Conversation", "q": "Words in the reason", "last": "In the last", "since": "From", "until": "To",
}  # fmt: skip
LIST = FilteredList(
    "audit", AuditFilters, listing.newest, listing.position_of, NAMES,
    as_typed=("from", "to", "target", "conversation", "q"), max_typed=300, max_value=100,
)  # fmt: skip


@require_safe
@require_permission("audit")
def entries(request: HttpRequest) -> HttpResponse:
    """List entries; `?part=list` returns only the rows, `?part=facets` only the filter choices, `?part=totals` what the
    page says of the whole log, and `?part=news&after=N` how many of the newest 50 matching entries are newer than entry
    N: `{new, is_cut}`."""
    filters, wrong = AuditFilters.read(dict(request.GET.lists()))
    part = request.GET.get("part", "")
    if part == "facets":
        return render_page(request, "partials/audit_facets.html", **_faceted(request, filters, wrong))
    if part == "totals":
        return render_page(request, "partials/audit_totals.html", **_chain())
    if part == "news":
        return _news(filters, wrong, number_of(request, "after") or 0)
    listed = _listed(request, filters, wrong)
    if part == "list":
        return render_page(request, "partials/audit_list.html", **listed)
    context = listed | _faceted(request, filters, wrong) | _chain()
    return render_page(request, "audit.html", status=400 if wrong else 200, **context)


@require_safe
@require_permission("audit")
def entry(request: HttpRequest, number: int) -> HttpResponse:
    """Show one entry opened, with the entries around it."""
    last = AuditEntry.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    if not 0 < number <= max(last, _head().seq):
        raise NotFound(f"The audit log has {last:,} entries; this entry does not exist.")
    nothing = AuditFilters()
    listed = _listed(request, nothing, {}, number + PAGE // 2 + 1, opened=number)
    return render_page(request, "audit.html", **(listed | _faceted(request, nothing, {}) | _chain()))


@require_POST
@require_permission("audit")
def revealed(request: HttpRequest, number: int) -> HttpResponse:
    """Show one entry once without masking; revealing it is itself audited."""
    reveal.reveal(request.user, number)
    nothing = AuditFilters()
    listed = _listed(request, nothing, {}, number + PAGE // 2 + 1, opened=number, revealed=number)
    response = render_page(request, "audit.html", **(listed | _faceted(request, nothing, {}) | _chain()))
    response["Cache-Control"] = "no-store"
    return response


@require_safe
@require_permission("audit")
def verification(request: HttpRequest) -> HttpResponse:
    """Verify the chain from the first entry, or one more piece of it; `?part=state` returns only the result so far."""
    result = verify_step.check(request.GET.get("cursor", ""))
    bad = result.fault.seq if result.fault else 0
    context: dict[str, Any] = {
        "checked": result,
        "next_href": reverse("audit-verification", query={"cursor": result.cursor}) if result.cursor else "",
        "bad_href": reverse("audit-entry", args=[bad]) if bad else "",
        "words": {name: hidden_characters.spelled_out(text) for name, text in _result_texts(result).items()},
    }
    template = "partials/audit_checked.html" if request.GET.get("part") == "state" else "audit_verification.html"
    return render_page(request, template, **context)


@require_http_methods(["GET", "HEAD", "POST"])
@require_permission("audit")
def record(request: HttpRequest) -> HttpResponse:
    """Show the progress of the last check of the whole record; a POST starts one. `?part=state` returns only what
    changes."""
    conflict = None
    if request.method == "POST":
        try:
            background_check.begin(request.user, verify_record.settings_of_server(), background_check.in_thread)
            return HttpResponseRedirect(reverse("audit-record"))
        except Conflict as error:
            conflict = error
    template = "partials/audit_record.html" if request.GET.get("part") == "state" else "audit_record.html"
    progress = background_check.current()
    context: dict[str, Any] = {
        "progress": progress,
        "drawn": [(hidden_characters.spelled_out(words), is_ok) for words, is_ok in progress.verdicts]
        if progress
        else [],
        "by": hidden_characters.spelled_out(progress.by) if progress else "",
        "refused": hidden_characters.spelled_out(conflict.sentence) if conflict else "",
    }
    return render_page(request, template, status=status_of(conflict), **context)


@require_safe
@require_permission("export")
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Send every entry that matches the filters, as CSV or JSON lines."""
    return LIST.send_file(request, EXPORT, form)


def _news(filters: AuditFilters, wrong: dict[str, str], after: int) -> JsonResponse:
    has_news = not wrong and _head().seq > after
    rows = listing.newest(filters, limit=PAGE).items if has_news else []
    new = sum(row.seq > after for row in rows)
    return JsonResponse({"new": new, "is_cut": new == PAGE})


def _listed(
    request: HttpRequest, filters: AuditFilters, wrong: dict[str, str], place: int | None = None, opened: int = 0,
    revealed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    page = LIST.page(request, filters, wrong, place)
    allowed = {verb for verb in permissions.VERBS if permissions.has_permission(request.user, verb)}
    looked_to = listing.at_of(page.after) if page.looked_at and page.after else None
    return LIST.page_context(filters, wrong, page) | {
        "rows": rows(page.items, allowed, revealed=revealed),
        "may_reveal": "reveal" in allowed,
        "erasable": audit_entries.with_erasable([row.seq for row in page.items]) if "redact" in allowed else (),
        "is_older": "before" not in wrong and bool(place or request.GET.get("before")),
        "opened": opened,
        "is_missing": bool(opened) and opened not in {entry.seq for entry in page.items},
        "looked_to": datetime_of(looked_to) if looked_to is not None else None,
    }


def _faceted(request: HttpRequest, filters: AuditFilters, wrong: dict[str, str]) -> dict[str, Any]:
    return LIST.facets_context(request, filters, wrong) | {
        "facets": _facets(filters),
        "name_of": lambda value: (
            mark_for(value, value).name if value.startswith("user:") else richtext.inline(value[:100])
        ),
    }


def _facets(filters: AuditFilters) -> list[tuple[str, list[str], list[str]]]:
    """Return filter names, each with the values to choose from (most frequent in the newest entries, chosen ones first)
    and all values for typing."""
    columns = ("principal", "verb", "acting_as")
    newest = list(AuditEntry.objects.order_by("-seq").values_list(*columns)[:NEWEST])
    facets = []
    for field, values in zip(("who", "verb", "acting_as"), list(zip(*newest, strict=True)) or [()] * 3, strict=True):
        chosen = list(getattr(filters, field))
        often = [name for name, _ in Counter(filter(None, values)).most_common()]
        shown = [*chosen, *(name for name in often if name not in chosen)][: max(SHOWN, len(chosen))]
        facets.append((field, shown, sorted(often)))
    return facets


def _chain() -> dict[str, Any]:
    head = _head()
    first, progress = listing.at_of(1), background_check.current()
    return {
        "head": head,
        "head_hash": hidden_characters.spelled_out(head.hash),
        "since": datetime_of(first) if first is not None else None,
        "signed": signed_state.current(),
        "verified": progress.outcome if progress else "",
    }


def _head() -> AuditHead:
    return AuditHead.objects.filter(id=1).first() or AuditHead()


def _result_texts(checked: verify_step.Checked) -> dict[str, str]:
    if checked.fault:
        return {"why": checked.fault.why, "expected": checked.fault.expected, "found": checked.fault.actual}
    return {"what": checked.anchor.first_bad, "why": checked.anchor.why} if checked.anchor else {}
