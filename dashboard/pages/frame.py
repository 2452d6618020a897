"""What every page is drawn with: who looks, and what they may."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from conversations import badge, rights
from conversations.models import User


def page(request: HttpRequest, template: str, *, status: int = 200, **context: Any) -> HttpResponse:
    """Draw a page for whoever is signed in; `context` is the template's own."""
    return render(request, template, {**looker(request), **context}, status=status)


def looker(request: HttpRequest) -> dict[str, object]:
    """Answer `person` (none for nobody and for a token), `may`, the verbs allowed, `roles`, both space separated,
    `waiting`, how many questions wait for a decision that this person can make, and `escalated`, how many of them were
    escalated to a role of theirs."""
    who = getattr(request, "user", None)
    if who is None or not who.is_authenticated:
        return {"person": None, "may": "", "roles": "", "waiting": 0, "escalated": 0}
    allowed = " ".join(verb for verb in rights.VERBS if rights.may(who, verb))
    held = rights.roles_of(who)
    now = badge.standing() if "view" in allowed.split() else {}
    waiting = now.get("waiting", 0) - now.get("barred", {}).get(str(rights.principal_of(who)), 0)
    escalated = sum(number for role, number in now.get("escalated", {}).items() if role in held)
    told = {"roles": " ".join(sorted(held)), "waiting": waiting, "escalated": escalated}
    return {"person": who if isinstance(who, User) else None, "may": allowed, **told}
