"""Signing in by password or link, and signing out."""

import threading
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

from conversations.actions import sessions
from conversations.actions.sign_in_links import use_link
from conversations.errors import SwitchboardError
from conversations.models import Conversation, User
from dashboard import throttle
from dashboard.pages.frame import page

AT_ONCE = 3  # passwords checked at the same time: each costs a thread of the pages some tenths of a second
BACKEND = "django.contrib.auth.backends.ModelBackend"
_turns = threading.BoundedSemaphore(AT_ONCE)


@login_not_required
@ensure_csrf_cookie
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Ask for name and password; let in, or say how many tries are left."""
    if request.method != "POST":
        return _to_next(request) if request.user.is_authenticated else _draw(request)
    name = request.POST.get("username", "").strip()[:150]
    if not _turns.acquire(blocking=False):
        return _draw(request, status=429, name=name, error="Too many people sign in at this moment. Try again.")
    try:
        user = authenticate(request, username=name, password=request.POST.get("password", ""))
    finally:
        _turns.release()
    if isinstance(user, User):
        _begin(request, user, "password")
        return _to_next(request)
    is_locked = bool(getattr(request, "axes_locked_out", False))
    sessions.note_failed_sign_in(name, request.META["REMOTE_ADDR"], is_locked_out=is_locked)
    left = throttle.tries_left(request, name)
    tries = "1 try" if left == 1 else f"{left} tries"
    return _draw(
        request, status=422, name=name, error=f"Name or password is wrong. {tries} left, then wait 15 minutes."
    )


@login_not_required
@ensure_csrf_cookie
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest) -> HttpResponse:
    """Use a link. One that another page opened, or that is fetched ahead, waits for a click on a button."""
    secret = request.POST.get("t", "") or request.GET.get("t", "")
    if request.method != "POST" and not _is_by_hand(request):
        return page(request, "sign_in_link.html", secret=secret, error="")
    try:
        user = use_link(secret, address=request.META["REMOTE_ADDR"])
        _begin(request, user, "link")
    except SwitchboardError as error:
        return page(request, "sign_in_link.html", status=error.status, secret="", error=error.message)
    return HttpResponseRedirect(_first_page())


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End this session."""
    if isinstance(request.user, User):
        sessions.sign_out(request.user, end=lambda: logout(request))
    return HttpResponseRedirect(reverse("sign-in"))


@require_POST
def sign_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End all of one's sessions, this one too."""
    if isinstance(request.user, User):
        sessions.sign_out_everywhere(request.user, request.user.username)
        logout(request)
    return HttpResponseRedirect(reverse("sign-in"))


def locked_out(request: HttpRequest, response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """Say when to try again; django-axes calls it."""
    name = (credentials or {}).get("username") or request.POST.get("username", "")
    until = throttle.locked_until(name, request.META["REMOTE_ADDR"]) or timezone.now()
    words = f"Too many wrong tries. Try again after {until:%H:%M:%S} UTC, or use a sign-in link."
    answer = _draw(request, status=429, name=name, error=words)
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
    """Tell whether the browser went here by itself: typed, a terminal's link, our own page; not ahead of a click."""
    ahead = ("Sec-Purpose", "Purpose", "X-Moz")
    if request.method != "GET" or any("prefetch" in request.headers.get(name, "") for name in ahead):
        return False
    return request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")


def _first_page() -> str:
    """Answer where a link leads: to the demo while it is all there is to see, else to the list."""
    newest = Conversation.objects.visible().newest_first().first()
    is_demo = newest is not None and newest.is_demo
    return reverse("conversation", args=[newest.key]) if newest and is_demo else reverse("conversations")


def _to_next(request: HttpRequest) -> HttpResponse:
    path = request.POST.get("next") or request.GET.get("next") or ""
    is_own = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return HttpResponseRedirect(path if is_own else reverse("conversations"))


def _draw(request: HttpRequest, *, status: int = 200, name: str = "", error: str = "") -> HttpResponse:
    next_path = request.POST.get("next") or request.GET.get("next") or ""
    return page(request, "sign_in.html", status=status, name=name, error=error, next_path=next_path)
