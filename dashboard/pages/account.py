"""The signed-in person's own account: change the password, see the sessions, sign out everywhere."""

from django.contrib.auth import authenticate, update_session_auth_hash
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from conversations.access.accounts import sign_in
from conversations.core.errors import Invalid, NotAllowed
from conversations.models import User
from dashboard.pages.base_context import render_page


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show the account; a POST sets the password, keeps this session and ends the others."""
    user = request.user
    if not isinstance(user, User):
        raise NotAllowed("An account belongs to a person, not to a token.")
    if request.method != "POST":
        return _draw(request, user)
    try:
        _change_password(request, user)
    except Invalid as error:
        return _draw(request, user, error)
    return HttpResponseRedirect(reverse("account", query={"saved": "password"}))


account.open_without_role = True  # type: ignore[attr-defined]  # the gate reads it


def _change_password(request: HttpRequest, user: User) -> None:
    if _needs_old(request, user) and not authenticate(
        request, username=user.username, password=request.POST.get("old", "")
    ):
        raise Invalid("This is not your current password.", field="old")
    changed = sign_in.set_password(user, user.username, request.POST.get("new", ""))
    update_session_auth_hash(request, changed)
    request.session["how"] = "password"


def _needs_old(request: HttpRequest, user: User) -> bool:
    """Return whether the current password is required. It is not after a sign-in link, which replaces a forgotten
    one."""
    return user.has_usable_password() and request.session.get("how") != "link"


def _draw(request: HttpRequest, user: User, error: Invalid | None = None) -> HttpResponse:
    return render_page(
        request,
        "account.html",
        status=422 if error else 200,
        fault={error.field: error.sentence_beside} if error else {},
        needs_old=_needs_old(request, user),
        saved=request.GET.get("saved", ""),
        seats=sorted(sign_in.devices_of(user), key=lambda seat: seat.since or user.created_at, reverse=True),
        here=request.session.session_key,
    )
