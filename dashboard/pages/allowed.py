"""Pages that take a right: everybody else gets 403 and an entry in the audit log."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse

from conversations import rights

View = Callable[..., HttpResponse]  # a request, and what the route names


def takes(verb: str) -> Callable[[View], View]:
    """Let in only who may do `verb` (design 3.7)."""

    def guard(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, **kwargs: object) -> HttpResponse:
            rights.require(request.user, verb)
            return view(request, **kwargs)

        return checked

    return guard
