"""Error pages: in the product's look, in plain words, never a stack trace."""

import logging
import sys

from django.core.exceptions import RequestDataTooBig
from django.db import DataError, Error
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render

from conversations.access import permissions
from conversations.access.audit import chain, refusal_counter
from conversations.core import hidden_characters
from conversations.core.db_threads import is_damage, is_unavailable, unavailable
from conversations.core.errors import (
    RETRY_STATUSES,
    Invalid,
    NotAllowed,
    NotFound,
    SwitchboardError,
    TooLarge,
    Unavailable,
)
from conversations.tool_calls.schemas.argument_check import InvalidArguments
from dashboard.pages import typed_addresses
from dashboard.pages.base_context import viewer_context

logger = logging.getLogger("dashboard")

RETRY_AFTER = "1"  # seconds after which a request may work

FORM_TOKEN_OLD = "CSRF token from POST incorrect."  # Django's words
TITLES = {
    400: "Invalid request",
    401: "Sign in required",
    403: "Not allowed",
    404: "Page not found",
    409: "Already changed",
    413: "Too large",
    429: "Too many requests",
    500: "Server error",
    503: "Temporarily unavailable",
}

NO_DATABASE = "The database does not respond or cannot be written to. Reload the page in a moment."
DAMAGED = "The database is damaged. The operator of this server can run `switchboard verify` to find out where."


def answer(request: HttpRequest, error: SwitchboardError) -> HttpResponse:
    """Return an error as a response: JSON (§3.6) below `/api/` and for the scripts of pages, else a page."""
    if wants_json(request):
        response: HttpResponse = JsonResponse({"error": error.as_dict()}, status=error.status)
    else:
        response = _page(request, error.status, error.sentence)
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if error.status in RETRY_STATUSES:
        response["Retry-After"] = RETRY_AFTER
    return response


def wants_json(request: HttpRequest) -> bool:
    """Return whether an error is answered as JSON: below `/api/` and to scripts of pages."""
    return request.path.startswith("/api/") or is_from_script(request)


def is_from_script(request: HttpRequest) -> bool:
    """Return whether a script of an open page asks (`static/js/fetch.js`)."""
    return request.headers.get("X-Requested-With") == "fetch"


def status_of(error: SwitchboardError | None) -> int:
    """Return the status of a form that is shown again after an error; 200 without an error."""
    if error is None:
        return 200
    return 422 if error.status == Invalid.status else error.status


def problems_of(error: SwitchboardError | None) -> dict[str, str]:
    """Return a form's error messages by field, as they stand beside the field."""
    if isinstance(error, InvalidArguments):
        problems = error.problems
    else:
        problems = {error.field: error.message} if isinstance(error, Invalid) and error.field else {}
    texts = {name: hidden_characters.spelled_out(problem) for name, problem in problems.items()}
    return {name: f"{text[:1].upper()}{text[1:]}" for name, text in texts.items()}


def page(request: HttpRequest, error: SwitchboardError, advice: str = "") -> HttpResponse:
    """Return an error as a page, whatever the address; refusals are recorded in the audit log."""
    _record(request, error)
    return _page(request, error.status, f"{error.sentence} {advice}".strip())


def answer_exception(request: HttpRequest, exception: Exception) -> HttpResponse | None:
    """Return the response for a SwitchboardError that a view raised; None for other exceptions, which become a 500.
    Refusals are recorded in the audit log."""
    if isinstance(exception, DataError):
        return bad_request(request)
    if not isinstance(exception, SwitchboardError):
        return None
    _record(request, exception)
    return answer(request, exception)


def _record(request: HttpRequest, error: SwitchboardError) -> None:
    if isinstance(error, NotAllowed) and not error.is_recorded:
        verb = request.resolver_match.url_name if request.resolver_match else None
        who, what = permissions.principal_of(request.user), verb or "page"
        if not refusal_counter.is_repeat(who, what, request.path, error.message):
            chain.refuse(who, what, request.path, reason=error.message)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Return 400, and 413 for a body over the limit."""
    if isinstance(exception, RequestDataTooBig):
        return answer(request, TooLarge("Pages accept at most 2 MiB."))
    return answer(request, Invalid("The address, host name or a form field is not valid here."))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Return 403."""
    return answer(request, NotAllowed("Your roles do not allow this. An administrator can add the role you need."))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Return 404, or the way to the page that was meant."""
    if not wants_json(request) and (target := typed_addresses.page_for(request)):
        return HttpResponseRedirect(target)
    return answer(request, NotFound("The address may be mistyped, or the page no longer exists."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return 403 for a form without a valid CSRF token, and count it."""
    refusal_counter.record_refusal(
        request.META.get("REMOTE_ADDR", "unknown"), "forged_form", "pages", reason=reason or "no token"
    )
    what = "The form has expired or came from another site."
    if reason == FORM_TOKEN_OLD and request.user.is_authenticated:  # each sign-in makes a new one
        name = request.user.get_username()
        what = f"This form was opened before {name} signed in in this browser, so nothing was done."
    return answer(request, NotAllowed(f"{what} Go back, reload the page and try again."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Return 500 without touching the database, which may be what broke."""
    broken = sys.exc_info()[1]
    if isinstance(broken, DataError):  # PostgreSQL refuses what no column can hold: NUL, a number out of range
        return bad_request(request)
    if isinstance(broken, Error) and is_unavailable(broken):
        message = DAMAGED if is_damage(broken) else NO_DATABASE
        return _no_database(request, unavailable(broken), message)
    reference = getattr(request, "id", "")
    logger.error("request %s failed: %s %s", reference, request.method, request.path)
    if wants_json(request):
        body = {"error": {"code": "error", "message": f"Server error. Reference {reference}."}}
        return JsonResponse(body, status=500)
    message = "This is not your fault. Your action may or may not have taken effect, so check before trying again."
    try:
        return _page(request, 500, message, {})
    except Exception:  # whatever broke the page may break this one too
        logger.exception("the error page failed too")
        return HttpResponse(f"{TITLES[500]}. Reference {reference}.", status=500, content_type="text/plain")


def _no_database(request: HttpRequest, error: Unavailable, message: str) -> HttpResponse:
    """Return 503: nothing was changed, and the request can be repeated once the database is available."""
    logger.warning("request %s: %s", getattr(request, "id", ""), error.message)
    answered = (
        JsonResponse({"error": error.as_dict()}, status=error.status)
        if wants_json(request)
        else _page(request, error.status, message, {})
    )
    answered["Retry-After"] = RETRY_AFTER
    answered._has_been_logged = True  # type: ignore[attr-defined]  # Django would do so again, with a traceback
    return answered


def no_role(request: HttpRequest) -> HttpResponse:
    """Tell a signed-in person without a role whom to ask."""
    refusal_counter.record_refusal(
        request.META.get("REMOTE_ADDR", ""), "view", str(permissions.principal_of(request.user)), reason="no role"
    )
    message = "You are signed in but have no role yet. Ask an administrator for one."
    if wants_json(request):
        return JsonResponse({"error": NotAllowed(message).as_dict()}, status=403)
    return _page(request, 403, message, title="No role yet")


def _page(
    request: HttpRequest, status: int, message: str, context: dict[str, object] | None = None, title: str = ""
) -> HttpResponse:
    drawn = viewer_context(request) if context is None else {"person": None, "may": "", **context}
    fields = {"status": status, "title": title or TITLES.get(status, TITLES[500]), "words": message}
    return render(request, "error.html", {**drawn, **fields, "reference": getattr(request, "id", "")}, status=status)
