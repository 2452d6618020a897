"""Pages for when it does not work: in the product's look, in plain words, never a stack trace."""

import logging
import sys

from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from conversations import audit, refusals, rights
from conversations.errors import Invalid, NotAllowed, NotFound, SwitchboardError, TooLarge, Unavailable
from conversations.threads import unavailable
from dashboard.pages.frame import looker

logger = logging.getLogger("dashboard")

TITLES = {
    400: "This request does not make sense here",
    401: "Sign in first",
    403: "You may not do this",
    404: "Nothing is here",
    409: "Somebody was first",
    413: "This is too large",
    429: "Too many at once",
    500: "Something broke on the server",
    503: "Not available now",
}


def answer(request: HttpRequest, error: SwitchboardError) -> HttpResponse:
    """Answer an error of ours: JSON as in design 3.6 below `/api/`, else a page."""
    if request.path.startswith("/api/"):
        response: HttpResponse = JsonResponse({"error": error.as_dict()}, status=error.status)
    else:
        response = _page(request, error.status, error.message)
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def status_of(error: SwitchboardError | None) -> int:
    """Answer the status of a form that is drawn again with what was wrong; 200 where nothing was."""
    if error is None:
        return 200
    return 422 if error.status == Invalid.status else error.status


def page(request: HttpRequest, error: SwitchboardError, advice: str = "") -> HttpResponse:
    """Answer an error as a page, whatever the address; records refusals at the edge."""
    _record(request, error)
    return _page(request, error.status, f"{error.message}. {advice}" if advice else error.message)


def answer_exception(request: HttpRequest, exception: Exception) -> HttpResponse | None:
    """Answer what a view raised, when it is of our tree; the rest becomes a 500. Records refusals at the edge."""
    if isinstance(exception, DataError):
        return bad_request(request)
    if not isinstance(exception, SwitchboardError):
        return None
    _record(request, exception)
    return answer(request, exception)


def _record(request: HttpRequest, error: SwitchboardError) -> None:
    if isinstance(error, NotAllowed) and not error.is_recorded:
        verb = request.resolver_match.url_name if request.resolver_match else None
        audit.refuse(rights.principal_of(request.user), verb or "page", request.path, reason=error.message)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 400, and 413 for a body over the limit."""
    if isinstance(exception, RequestDataTooBig):
        return answer(request, TooLarge("A page takes at most 2 MiB."))
    return answer(request, Invalid("The address, the host name or a field is not one this server can work with."))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 403."""
    return answer(request, NotAllowed("Your roles do not include this. An administrator can add them."))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 404."""
    return answer(request, NotFound("The address may be mistyped, or what it named is gone."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form without a good token, and count it."""
    refusals.count(request.META.get("REMOTE_ADDR", "unknown"), "forged_form", "pages", reason=reason or "no token")
    return answer(
        request, NotAllowed("The form was too old or came from elsewhere. Go back, load the page again, try again.")
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 without touching the database, which may be what broke."""
    broken = sys.exc_info()[1]
    if isinstance(broken, DataError):  # PostgreSQL refuses what no column can hold: NUL, a number out of range
        return bad_request(request)
    if isinstance(broken, OperationalError | InterfaceError):
        return _no_database(request, unavailable(broken))
    reference = getattr(request, "id", "")
    logger.error("request %s failed: %s %s", reference, request.method, request.path)
    if request.path.startswith("/api/"):
        body = {"error": {"code": "error", "message": f"Something broke on the server. Reference {reference}."}}
        return JsonResponse(body, status=500)
    words = "It was not you. What you did may or may not have happened: look before trying again."
    try:
        return _page(request, 500, words, {})
    except Exception:  # whatever broke the page may break this one too
        logger.exception("the error page failed too")
        return HttpResponse(f"{TITLES[500]}. Reference {reference}.", status=500, content_type="text/plain")


def _no_database(request: HttpRequest, error: Unavailable) -> HttpResponse:
    """Answer 503: nothing was changed, and the same works again as soon as the database does."""
    logger.warning("request %s: %s", getattr(request, "id", ""), error.message)
    if request.path.startswith("/api/"):
        return JsonResponse({"error": error.as_dict()}, status=error.status)
    return _page(
        request, error.status, "The database does not answer or cannot write. Load the page again in a moment.", {}
    )


def no_role(request: HttpRequest) -> HttpResponse:
    """Tell a signed-in person without any role what to do."""
    refusals.count(
        request.META.get("REMOTE_ADDR", ""), "view", str(rights.principal_of(request.user)), reason="no role"
    )
    words = "You are signed in, but have no role yet, so there is nothing to see. Ask an administrator for one."
    return _page(request, 403, words, title="No role yet")


def _page(
    request: HttpRequest, status: int, words: str, context: dict[str, object] | None = None, title: str = ""
) -> HttpResponse:
    drawn = looker(request) if context is None else {"person": None, "may": "", **context}
    facts = {"status": status, "title": title or TITLES.get(status, TITLES[500]), "words": words}
    return render(request, "error.html", {**drawn, **facts, "reference": getattr(request, "id", "")}, status=status)
