"""What every page is drawn with: who looks, and what they may."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from conversations import rights
from conversations.models import Approval, User


def page(request: HttpRequest, template: str, *, status: int = 200, **context: Any) -> HttpResponse:
    """Draw a page for whoever is signed in; `context` is the template's own."""
    return render(request, template, {**looker(request), **context}, status=status)


def looker(request: HttpRequest) -> dict[str, object]:
    """Answer `person` (none for nobody and for a token), `may`, the verbs allowed, space separated, and `waiting`, how
    many questions wait for a decision."""
    who = getattr(request, "user", None)
    if who is None or not who.is_authenticated:
        return {"person": None, "may": "", "waiting": 0}
    allowed = " ".join(verb for verb in rights.VERBS if rights.may(who, verb))
    waiting = Approval.objects.open().count() if "view" in allowed.split() else 0
    return {"person": who if isinstance(who, User) else None, "may": allowed, "waiting": waiting}
