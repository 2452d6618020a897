"""What happens to every page request: headers, refusal of foreign senders, the gate. Plain functions.

All of the chain is synchronous, Django's parts too, so that a request makes one hop into a thread and one back;
a chain that mixes kinds hops at every border.
"""

import ipaddress
import uuid
from collections.abc import Callable
from urllib.parse import unquote

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.gzip import GZipMiddleware
from django.urls import reverse

from conversations.access import authentication, permissions
from conversations.access.accounts import tokens
from conversations.access.audit import chain, refusal_counter
from conversations.core import log_format
from conversations.core.errors import MethodNotAllowed, NotAllowed, NotSignedIn, OtherPerson, SwitchboardError
from conversations.models import User
from dashboard.pages import errors

Handler = Callable[[HttpRequest], HttpResponse]

SAFE = ("GET", "HEAD", "OPTIONS")
FOREIGN = ("cross-site", "same-site")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'{socket}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types switchboard"
)
FIXED = {
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",  # else the names in a message's links are looked up before anybody clicks
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}

SIGN_IN = "Sign in or send a token."
PAGE_PERSON = "X-Switchboard-Person"  # for whom the page of a script was rendered (`static/js/fetch.js`)
HSTS = "max-age=31536000"  # seconds: a year; without subdomains, which may be others'


def headers(get_response: Handler) -> Handler:
    """Number the request, refuse hosts that are not ours, and put the security headers on every answer."""

    def middleware(request: HttpRequest) -> HttpResponse:
        number = getattr(request, "scope", {}).get("request_id") or uuid.uuid4().hex[:12]
        request.id = number  # type: ignore[attr-defined]  # Django's requests are open
        with chain.during(request=number, address=address_of(request)), log_format.log_context(request=number):
            response = _in_json(request, get_response(request))
        response["X-Request-Id"] = number
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.format(socket=_socket_origin(request))
        for name, value in FIXED.items():
            response[name] = value
        if not request.path.startswith("/static/"):
            response.setdefault("Cache-Control", "no-store")
        if request.is_secure():
            _keep_to_tls(response)
        return response

    return middleware


def compressed(get_response: Handler) -> Handler:
    """Compress pages; files are sent as they come. Django pads each by up to 100 random bytes, so that its length tells
    nothing of a secret in it (BREACH), and the token of a form is masked again in every answer."""
    compress = GZipMiddleware(get_response).process_response

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not response.streaming:
            compress(request, response)  # in place
        return response

    return middleware


def _keep_to_tls(response: HttpResponse) -> None:
    """Have the browser send our cookies, and come back, over TLS alone."""
    response["Strict-Transport-Security"] = HSTS
    for cookie in response.cookies.values():
        cookie["secure"] = True


def _in_json(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Say as JSON what Django says without words: this method is not one of this address."""
    if response.status_code != 405 or not request.path.startswith("/api/"):
        return response
    error = MethodNotAllowed([response["Allow"]])
    answer = errors.answer(request, error)
    answer["Allow"] = response["Allow"]
    return answer


def fetch_metadata(get_response: Handler) -> Handler:
    """Refuse hosts that are not ours (400), and changes that another site's page asked the browser for (403)."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.get_host()  # raises DisallowedHost: a name rebound to this address
        if request.method not in SAFE and request.headers.get("Sec-Fetch-Site") in FOREIGN:
            refusal_counter.record_refusal(
                address_of(request), "cross_site", "pages", reason="asked for by another site's page"
            )
            return errors.answer(request, NotAllowed("The request came from another site's page, so nothing was done."))
        return get_response(request)

    return middleware


def signed_in(get_response: Handler) -> Handler:
    """Let in who has a session, or a token (§3.6); views marked `login_not_required` are open to all."""

    def middleware(request: HttpRequest) -> HttpResponse:
        bearer = _bearer(request)
        if bearer is None:
            return _guarded(request, get_response(request))
        try:
            _take_token(request, bearer)
        except SwitchboardError as error:
            return errors.answer(request, error)
        return _guarded(request, get_response(request))

    middleware.process_view = _gate  # type: ignore[attr-defined]  # Django looks for it on whatever the factory makes
    middleware.process_exception = errors.answer_exception  # type: ignore[attr-defined]
    return middleware


def address_of(request: HttpRequest) -> str:
    """Return the client's address, as the server saw it or a trusted proxy reported it (`trusted_proxies`)."""
    try:
        return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return "unknown"


def _bearer(request: HttpRequest) -> str | None:
    """Return the token of a request; None where it has none, whatever else the header may say."""
    kind, _, credentials = request.headers.get("Authorization", "").partition(" ")
    return credentials.strip() if kind.lower() == "bearer" else None


def _guarded(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Note on a file who reads it: it is sent while they may have it (law H). Refuse it to one who no longer may."""
    if not response.streaming:
        return response
    caller = authentication.caller_of(_bearer(request) or "", request.session.session_key or "")
    if caller is None and request.user.is_authenticated:
        response.close()
        return errors.answer(request, NotSignedIn("This token or session has ended.", code="token_revoked"))
    response._caller = caller  # type: ignore[attr-defined]  # `django_handler` checks it while the response is sent
    return response


def _take_token(request: HttpRequest, bearer: str) -> None:
    request.user = AnonymousUser()  # a cookie beside a token counts for nothing
    token = tokens.token_of(bearer)
    if token is None:
        refusal_counter.record_refusal(address_of(request), "use_token", "pages", reason="no such token, or revoked")
        raise NotSignedIn("This token does not exist or was revoked.")
    if request.method not in SAFE and not request.path.startswith("/api/"):
        raise NotAllowed("Tokens can read pages. Use /api/v1/ to make changes.")
    request.user = token  # type: ignore[assignment]  # `permissions` knows people and tokens alike
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]  # no cookie was used, so none can be abused


def _gate(request: HttpRequest, view: Callable[..., object], args: object, kwargs: object) -> HttpResponse | None:
    if not getattr(view, "login_required", True):
        return None
    who = request.user
    if isinstance(who, AnonymousUser) or not who.is_authenticated:
        return _to_sign_in(request)
    if isinstance(who, User) and (opened_by := unquote(request.headers.get(PAGE_PERSON, who.username))) != who.username:
        return errors.answer(request, OtherPerson(opened_by, who.username))
    if (
        getattr(view, "open_without_role", False)
        or request.path.startswith("/api/")
        or permissions.has_permission(who, "view")
    ):
        return None
    return errors.no_role(request)


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    if request.method not in SAFE or errors.wants_json(request):
        is_of_page = PAGE_PERSON in request.headers  # a person reads it, beside what they have entered
        remedy = "You are signed out. Sign in in another tab, then try again." if is_of_page else SIGN_IN
        return errors.answer(request, NotSignedIn(remedy))
    path = request.get_full_path()
    return HttpResponseRedirect(reverse("sign-in", query={"next": path} if path != "/" else None))


def _socket_origin(request: HttpRequest) -> str:
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    return f" {'wss' if request.is_secure() else 'ws'}://{host}"
