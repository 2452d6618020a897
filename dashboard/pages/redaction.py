"""The redaction page, for admins: what would be removed and where, the reason, and requests that wait for a second
person.

Personal data is posted, never part of an address: addresses stay in histories and logs.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.access import four_eyes, permissions
from conversations.core import hidden_characters
from conversations.core.errors import Invalid, NotAllowed, SwitchboardError
from conversations.core.micros import to_datetime
from conversations.core.url_converters import row_number
from conversations.models import Redaction, RedactionRequest
from conversations.redaction import expiry, requests, retention_rules, scope
from conversations.redaction.requests import Submitted
from conversations.redaction.scope import RedactedPlace, RedactionScope
from conversations.redaction.selection import MAX_EVENTS, range_of
from dashboard.pages import form_error
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission

ENTERED = ("conversation", "events", "id", "call", "field", "entries", "person", "words", "reason")
IN_ADDRESS = ("conversation", "events", "id", "call", "field", "entries")
LATEST = 20
PREVIEWED = 5  # requests that wait: each preview may search all events


class EventNumbers(NamedTuple):
    """Numbers of events or audit entries as people type them: `3, 5-7`."""

    text: str
    field: str = "events"

    def read(self) -> list[int]:
        """Return the numbers. Raises Invalid."""
        noun = "event" if self.field == "events" else "entry"
        numbers: list[int] = []
        for part in re.split(r"[\s,]+", self.text.strip()) if self.text.strip() else ():
            those = range_of(part, MAX_EVENTS)
            if those is None:
                raise Invalid(f"must be {noun} numbers: 3, 5-7", field=self.field)
            numbers += those
        return numbers


@require_permission("redact")
@require_http_methods(["GET", "HEAD", "POST"])
def redaction(request: HttpRequest) -> HttpResponse:
    """Preview a redaction; with the confirming button redact, or request a second person's confirmation."""
    fields = request.POST if request.method == "POST" else request.GET
    names = ENTERED if request.method == "POST" else IN_ADDRESS
    entered = {name: fields.get(name, "").replace("\r\n", "\n").strip()[:2000] for name in names}
    error: SwitchboardError | None = None
    places: list[RedactedPlace] = []
    entries: list[int] = []
    ids: list[str] = []
    try:
        if any(entered[name] for name in names if name != "reason"):
            places, entries = scope.preview(what := _scope(entered)), scope.preview_entries(what)
            ids = scope.preview_ids(what)
            if request.POST.get("do") == "redact":
                submitted = requests.submit(request.user, what, entered["reason"])
                return _back("id") if what.is_id and submitted.outcome else _done(submitted)
    except SwitchboardError as fault:
        error = fault
    return _draw(request, error, entered=entered, places=places, entries=entries, ids=ids)


@require_permission("redact")
@require_POST
def decisions(request: HttpRequest) -> HttpResponse:
    """Confirm or decline another person's request."""
    number = row_number(request.POST.get("request", ""))
    try:
        if request.POST.get("do") != "confirm":
            requests.decline(request.user, number)
            return _back("declined")
        return _done(Submitted(requests.confirm(request.user, number), None))
    except SwitchboardError as error:
        return _draw(request, error, entered={})


def _scope(entered: dict[str, str]) -> RedactionScope:
    words = [word.strip() for word in entered.get("words", "").split("\n") if word.strip()]
    return RedactionScope(
        entered["conversation"],
        EventNumbers(entered["events"]).read(),
        entered["call"],
        entered["field"],
        entered.get("person", "").removeprefix("user:"),
        words,
        EventNumbers(entered["entries"], "entries").read(),
        bool(entered["id"]),
    )


def _done(submitted: Submitted) -> HttpResponse:
    if submitted.outcome is None:
        return _back("requested")
    events = sum(len(redacted.seqs) for redacted in submitted.outcome.redacted)
    outcome = submitted.outcome
    return _back("redacted", count=events, refused=len(outcome.refused), entries=outcome.entries)


def _back(done: str, **figures: int) -> HttpResponse:
    return HttpResponseRedirect(reverse("redaction", query={"done": done, **figures}))


def _draw(
    request: HttpRequest, error: SwitchboardError | None, *, entered: dict[str, str],
    places: Sequence[RedactedPlace] = (), entries: Sequence[int] = (), ids: Sequence[str] = (),
) -> HttpResponse:  # fmt: skip
    if isinstance(error, NotAllowed) and not error.is_recorded:
        raise error
    sentence, fault = form_error.placed(error, ENTERED)
    return render_page(
        request,
        "redaction.html",
        status=status_of(error),
        entered=dict.fromkeys(ENTERED, "") | entered,
        places=[_place(place) for place in places],
        events=sum(len(place.seqs) for place in places),
        audit_entries=len(entries),
        audit_numbers=_listed(entries),
        ids=[(key, hidden_characters.spelled_out(key)) for key in ids],
        error=sentence,
        fault=fault,
        waiting_requests=_waiting(request),
        needs_second=settings.CONFIG.redaction_four_eyes,
        latest=[_latest(made) for made in _newest()],
        done=request.GET.get("done", "") if error is None else "",
        figures={
            name: value for name in ("count", "refused", "entries") if (value := request.GET.get(name, "")).isdecimal()
        },
    )


def _place(place: RedactedPlace) -> dict[str, Any]:
    return {
        "conversation": place.conversation,
        "name": hidden_characters.spelled_out(place.conversation),
        "seqs": place.seqs[:LATEST],
        "more": max(len(place.seqs) - LATEST, 0),
        "first": place.seqs[0] if place.seqs else 1,
        "kinds": place.kinds,
        "elsewhere": place.elsewhere,
        "is_fork": place.is_fork,
        "blocked": hidden_characters.spelled_out(place.blocked),
    }


def _waiting(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the requests that wait; the oldest, and the one that the address names, with what they would remove."""
    waiting, principal = list(requests.pending()), str(permissions.principal_of(request.user))
    shown = {str(pending_request.pk) for pending_request in waiting[:PREVIEWED]} | {request.GET.get("request", "")}
    return [
        _request(pending_request, principal) | (_would_go(pending_request) if str(pending_request.pk) in shown else {})
        for pending_request in waiting
    ]


def _would_go(pending_request: RedactionRequest) -> dict[str, Any]:
    what = RedactionScope.from_json(pending_request.scope)
    if what.terms:
        kinds, held = expiry.preview(retention_rules.selector(what.terms))
        return {"is_previewed": True, "events": kinds.total(), "held": held}
    try:
        places, entries = scope.preview(what), scope.preview_entries(what)
    except SwitchboardError as error:
        return {
            "is_previewed": True,
            "places": [],
            "audit_entries": 0,
            "events": 0,
            "fault": hidden_characters.spelled_out(error.sentence),
        }
    return {
        "is_previewed": True,
        "places": [_place(place) for place in places],
        "events": sum(len(place.seqs) for place in places),
        "audit_entries": len(entries),
        "audit_numbers": _listed(entries),
    }


def _request(pending_request: RedactionRequest, principal: str) -> dict[str, Any]:
    return {
        "id": pending_request.pk,
        "what": hidden_characters.spelled_out(RedactionScope.from_json(pending_request.scope).name),
        "reason": hidden_characters.spelled_out(pending_request.reason),
        "by": hidden_characters.spelled_out(pending_request.requested_by.removeprefix("user:")),
        "is_own": four_eyes.is_same_person(principal, pending_request.requested_by),
        "at": to_datetime(pending_request.requested_at),
        "is_rule": RedactionScope.from_json(pending_request.scope).terms is not None,
        "is_previewed": False,
        "events": 0,
        "fault": "",
    }


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:LATEST])) + (" …" if len(numbers) > LATEST else "")


def _newest() -> QuerySet[Redaction]:
    return Redaction.objects.select_related("conversation").order_by("-id")[:LATEST]


def _latest(made: Redaction) -> dict[str, Any]:
    key = made.conversation.key if made.conversation else ""
    return {
        "conversation": key,
        "name": hidden_characters.spelled_out(key) or "Audit log",
        "events": len(json.loads(made.seqs)),
        "field": hidden_characters.spelled_out(made.field),
        "reason": hidden_characters.spelled_out(made.reason),
        "by": hidden_characters.spelled_out(made.by.removeprefix("user:")),
        "at": to_datetime(made.at),
    }
