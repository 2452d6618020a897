"""The audit log: every entry, newest first, by filters that live in the address; its chain, verified piece by piece.
Without scripts it works the same; `static/js/audit-log.js` saves the reloads."""

from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from conversations import rights
from conversations.actions.audit_exports import begin_export
from conversations.auditlog import checking, listing
from conversations.auditlog import export as exporting
from conversations.auditlog import filters as reading
from conversations.auditlog.filters import Filters
from conversations.auditlog.rows import moment, rows
from conversations.errors import Invalid, NotFound
from conversations.fragments import hidden, richtext
from conversations.fragments.who import who
from conversations.models import AuditEntry, AuditHead
from conversations.toolcalls.filters import LAST, iso
from dashboard.pages.allowed import takes
from dashboard.pages.frame import page as draw
from dashboard.pages.lists import attached, chips, form_of

PAGE = 50  # entries
NEWEST = 1_000  # entries whose names are offered to filter by
SHOWN = 6  # of each kind of names, the most frequent
ENTERED = ("from", "to", "target", "conversation", "q")  # what is shown as it was typed
NAMES = {
    "who": "Who", "acting_as": "Acting as", "verb": "Did", "outcome": "Outcome", "target": "To what",
    "conversation": "Conversation", "q": "Words in the reason", "last": "In the last", "since": "From", "until": "To",
}  # fmt: skip


@require_safe
@takes("audit")
def entries(request: HttpRequest) -> HttpResponse:
    """List entries; `?part=list` answers the rows alone, `?part=facets` what else there is to filter by."""
    found, wrong = reading.read(dict(request.GET.lists()))
    part = request.GET.get("part", "")
    if part == "facets":
        return draw(request, "partials/audit_facets.html", **_faceted(request, found, wrong))
    listed = _listed(request, found, wrong)
    if part == "list":
        return draw(request, "partials/audit_list.html", **listed)
    context = listed | _faceted(request, found, wrong) | _chain()
    return draw(request, "audit.html", status=400 if wrong else 200, **context)


@require_safe
@takes("audit")
def entry(request: HttpRequest, number: int) -> HttpResponse:
    """Show one entry, opened, among those around it."""
    last = AuditEntry.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    if not 0 < number <= max(last, _head().seq):
        raise NotFound(f"The audit log has {last:,} entries; there is no entry of this number.")
    nothing = Filters()
    listed = _listed(request, nothing, {}, before=number + PAGE // 2 + 1, opened=number)
    return draw(request, "audit.html", **(listed | _faceted(request, nothing, {}) | _chain()))


@require_safe
@takes("audit")
def verification(request: HttpRequest) -> HttpResponse:
    """Verify the chain from the first entry, or a piece more of it; `?part=state` answers what is known alone."""
    found = checking.check(request.GET.get("cursor", ""))
    bad = found.fault.seq if found.fault else 0
    context: dict[str, Any] = {
        "checked": found,
        "next_href": f"{reverse('audit-verification')}?{urlencode({'cursor': found.cursor})}" if found.cursor else "",
        "bad_href": reverse("audit-entry", args=[bad]) if bad else "",
        "words": {name: hidden.spell(text) for name, text in _said(found).items()},
    }
    template = "partials/audit_checked.html" if request.GET.get("part") == "state" else "audit_verification.html"
    return draw(request, template, **context)


@require_safe
@takes("export")
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Send every entry that the filters leave, as CSV or JSON lines."""
    kind = form_of(form)
    found = reading.strictly(dict(request.GET.lists()))
    begin_export(request.user, found, form)
    by = rights.principal_of(request.user)
    return attached(request, "audit", kind, lambda: exporting.export(found, kind, by))


def _listed(
    request: HttpRequest, found: Filters, wrong: dict[str, str], before: int | None = None, opened: int = 0
) -> dict[str, Any]:
    page, place = listing.Page([], None), before
    try:
        place = before or listing.seq_of(request.GET.get("before", ""))
    except Invalid as error:
        wrong["before"] = error.message
    if not wrong:
        walk = listing.FAR if request.GET.get("look") == "far" else listing.WALK
        page = listing.newest(found, before=place, limit=PAGE, walk=walk)
    may = {verb for verb in rights.VERBS if rights.may(request.user, verb)}
    looked_to = listing.at_of(page.after) if page.looked_at and page.after else None
    return {
        "filters": found,
        "wrong": {name: hidden.spell(message) for name, message in wrong.items()},
        "rows": rows(page.entries, may),
        "chips": chips(found.pairs, NAMES, lambda name: _href(found.without(name))),
        "is_older": place is not None,
        "opened": opened,
        "is_missing": bool(opened) and opened not in {one.seq for one in page.entries},
        "newest_href": _href(found),
        "older_href": _href(found, page.after) if page.after else "",
        "looked_at": page.looked_at,
        "looked_to": moment(looked_to) if looked_to is not None else None,
        "names": NAMES,
    }


def _faceted(request: HttpRequest, found: Filters, wrong: dict[str, str]) -> dict[str, Any]:
    return {
        "entered": {name: request.GET.get(name, "")[:300] for name in ENTERED},
        "filters": found,
        "wrong": {name: hidden.spell(message) for name, message in wrong.items()},
        "facets": _facets(found),
        "names": NAMES,
        "last": LAST,
        "inline": lambda value: richtext.inline(value[:100]),
        "name_of": lambda value: who(value, value).name if value.startswith("user:") else richtext.inline(value[:100]),
        "spell": hidden.spell,
        "is_clean": hidden.is_clean,
        "moments": {name: iso(at) for name, at in (("from", found.since), ("to", found.until)) if at is not None},
    }


def _facets(found: Filters) -> list[tuple[str, list[str], list[str]]]:
    """Answer names to filter by: the most frequent of the newest entries, those chosen first, and all for typing."""
    columns = ("principal", "verb", "acting_as")
    newest = list(AuditEntry.objects.order_by("-seq").values_list(*columns)[:NEWEST])
    made = []
    for field, values in zip(("who", "verb", "acting_as"), list(zip(*newest, strict=True)) or [()] * 3, strict=True):
        chosen = list(getattr(found, field))
        often = [name for name, _ in Counter(filter(None, values)).most_common()]
        shown = [*chosen, *(name for name in often if name not in chosen)][: max(SHOWN, len(chosen))]
        made.append((field, shown, sorted(often)))
    return made


def _chain() -> dict[str, Any]:
    head = _head()
    first = listing.at_of(1)
    return {"head": head, "head_hash": hidden.spell(head.hash), "since": moment(first) if first is not None else None}


def _head() -> AuditHead:
    return AuditHead.objects.filter(id=1).first() or AuditHead()


def _said(found: checking.Checked) -> dict[str, str]:
    if found.fault:
        return {"why": found.fault.why, "expected": found.fault.expected, "found": found.fault.found}
    return {"what": found.anchor.first_bad, "why": found.anchor.why} if found.anchor else {}


def _href(found: Filters, after: int | None = None) -> str:
    query = "&".join(filter(None, (found.query, f"before={after}" if after else "")))
    return reverse("audit") + (f"?{query}" if query else "")
