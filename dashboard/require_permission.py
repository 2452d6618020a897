"""Restrict a page or an endpoint of the API to a permission. Everyone else gets `NotAllowed`: 403, and an entry in the
audit log from where it is answered (`pages/errors.py`)."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from conversations.access import permissions

View = Callable[..., HttpResponseBase]  # a request, and what the route names


def require_permission(verb: str) -> Callable[[View], View]:
    """Let in only callers who may do `verb` (§3.7)."""

    def guard(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, **kwargs: object) -> HttpResponseBase:
            permissions.require(request.user, verb)
            return view(request, **kwargs)

        return checked

    return guard
