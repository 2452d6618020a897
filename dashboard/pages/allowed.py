"""Pages that take a right: everybody else gets 403 and an entry in the audit log."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from conversations import rights

View = Callable[..., HttpResponseBase]  # a request, and what the route names


def takes(verb: str) -> Callable[[View], View]:
    """Let in only who may do `verb` (design 3.7)."""

    def guard(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, **kwargs: object) -> HttpResponseBase:
            rights.require(request.user, verb)
            return view(request, **kwargs)

        return checked

    return guard
