"""Grants to people, for admins: listed on the People page, given and revoked here."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from conversations.access.accounts.edit_grants import give_grant, take_grant
from conversations.core.errors import Invalid
from dashboard.pages.people import admins_only


@admins_only
@require_POST
def grants(request: HttpRequest) -> HttpResponse:
    """Give a person a grant."""
    name, what, target, reason = (request.POST.get(field, "") for field in ("person", "what", "target", "reason"))
    until = _until(request.POST.get("until", ""))
    give_grant(request.user, name, what, target, until=until, reason=reason[:2000])
    return _back()


@admins_only
@require_POST
def removals(request: HttpRequest) -> HttpResponse:
    """Revoke a grant."""
    name, what, target, reason = (request.POST.get(field, "") for field in ("person", "what", "target", "reason"))
    take_grant(request.user, name, what, target, reason=reason[:2000])
    return _back()


def _until(text: str) -> datetime | None:
    """Parse a form's date and time as UTC; None if empty."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as error:
        raise Invalid("must be a date and time", field="until") from error


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("people", fragment="grants"))
