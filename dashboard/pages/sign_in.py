"""Sign in by password or link, and sign out."""

from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import http_date, url_has_allowed_host_and_scheme
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST

from conversations.access.accounts import people
from conversations.access.accounts import sign_in as sessions
from conversations.access.accounts.sign_in_links import use_link
from conversations.core.errors import SwitchboardError
from conversations.models import Conversation, User
from dashboard import sign_in_throttle
from dashboard.pages.base_context import render_page

BACKEND = "django.contrib.auth.backends.ModelBackend"
_line = sign_in_throttle.PasswordCheckQueue()


@login_not_required
@ensure_csrf_cookie
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Ask for name and password; sign the person in, or say how many tries are left."""
    if request.method != "POST":
        return _to_next(request) if request.user.is_authenticated else _draw(request)
    name = people.spelled(request.POST.get("username", "")[:150])[:150]
    with _line.place(request.META["REMOTE_ADDR"], name) as has_place:
        if not has_place:
            return _draw(request, status=429, name=name, error="Too many people are signing in right now. Try again.")
        user = authenticate(request, username=name, password=request.POST.get("password", ""))
    if isinstance(user, User):
        _begin(request, user, "password")
        return _to_next(request)
    is_locked = bool(getattr(request, "axes_locked_out", False))
    sessions.note_failed_sign_in(name, request.META["REMOTE_ADDR"], is_locked_out=is_locked)
    left = sign_in_throttle.tries_left(request, name)
    tries = "1 attempt" if left == 1 else f"{left} attempts"
    error = f"Wrong name or password. {tries} left before a 15-minute lockout."
    return _draw(request, status=422, name=name, error=error, is_wrong=True)


@login_not_required
@ensure_csrf_cookie
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest) -> HttpResponse:
    """Use a sign-in link. If another page opened it or a browser prefetched it, wait for a click on a button."""
    secret = request.POST.get("t", "") or request.GET.get("t", "")
    if request.method != "POST" and not _is_by_hand(request):
        return render_page(request, "sign_in_link.html", secret=secret, error="")
    try:
        user = use_link(secret, address=request.META["REMOTE_ADDR"])
        _begin(request, user, "link")
    except SwitchboardError as error:
        return render_page(request, "sign_in_link.html", status=error.status, secret="", error=error.sentence)
    return HttpResponseRedirect(_first_page())


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End this session."""
    if isinstance(request.user, User):
        sessions.sign_out(request.user, end=lambda: logout(request))
    return HttpResponseRedirect(reverse("sign-in"))


@require_POST
def sign_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End all sessions of this person, including this one."""
    if isinstance(request.user, User):
        sessions.sign_out_everywhere(request.user, request.user.username)
        logout(request)
    return HttpResponseRedirect(reverse("sign-in"))


def locked_out(request: HttpRequest, response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """Return the page that says when to try again; called by django-axes."""
    name = (credentials or {}).get("username") or request.POST.get("username", "")
    until = sign_in_throttle.locked_until(name, request.META["REMOTE_ADDR"]) or timezone.now()
    message = f"Too many failed attempts. Try again after {until:%H:%M:%S} UTC, or use a sign-in link."
    answer = _draw(request, status=429, name=name, error=message)
    answer["Retry-After"] = http_date(until.timestamp())
    return answer


sign_out.open_without_role = sign_out_everywhere.open_without_role = True  # type: ignore[attr-defined]


def _begin(request: HttpRequest, user: User, how: str) -> None:
    sessions.sign_in(user, how, begin=lambda: login(request, user, backend=BACKEND))
    request.session["how"] = how
    request.session["since"] = datetime.now(UTC).isoformat(timespec="seconds")
    request.session["address"] = request.META["REMOTE_ADDR"]
    request.session["browser"] = request.headers.get("User-Agent", "")[:200]


def _is_by_hand(request: HttpRequest) -> bool:
    """Return whether the browser says that a person opened the address: typed, from a terminal or from our own page,
    and not prefetched. A client that says nothing may be a link preview and gets the button."""
    ahead = ("Sec-Purpose", "Purpose", "X-Moz")
    if request.method != "GET" or any("prefetch" in request.headers.get(name, "") for name in ahead):
        return False
    return (
        request.headers.get("Sec-Fetch-Site") in ("none", "same-origin")
        and request.headers.get("Sec-Fetch-Mode") == "navigate"
    )


def _first_page() -> str:
    """Return where a sign-in link leads: to the demo if there is nothing else to see, else to the list."""
    newest = Conversation.objects.visible().newest_first().first()
    is_demo = newest is not None and newest.is_demo
    return reverse("conversation", args=[newest.key]) if newest and is_demo else reverse("conversations")


def _to_next(request: HttpRequest) -> HttpResponse:
    path = request.POST.get("next") or request.GET.get("next") or ""
    is_own = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return HttpResponseRedirect(path if is_own else reverse("conversations"))


def _draw(
    request: HttpRequest, *, status: int = 200, name: str = "", error: str = "", is_wrong: bool = False
) -> HttpResponse:
    next_path = request.POST.get("next") or request.GET.get("next") or ""
    drawn = {"name": name, "error": error, "is_wrong": is_wrong, "next_path": next_path}
    return render_page(request, "sign_in.html", status=status, **drawn)
