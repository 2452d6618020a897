"""What every page shows: who is signed in, and what they may do."""

import time
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from conversations.access import permissions
from conversations.conversation import visits
from conversations.models import User
from conversations.redaction import requests as redaction_requests
from conversations.runs.approvals import pending_counts

Part = dict[str, Any]  # what a template asks for by name


def render_page(request: HttpRequest, template: str, *, status: int = 200, **context: Any) -> HttpResponse:
    """Render a page for whoever is signed in and note that they are present; `context` is added for the template, and
    `drawn_at`, the time now (µs UTC)."""
    if isinstance(person := getattr(request, "user", None), User):
        visits.note(person.pk)
    now = {"drawn_at": time.time_ns() // 1000}
    return render(request, template, {**viewer_context(request), **now, **context}, status=status)


def viewer_context(request: HttpRequest) -> dict[str, object]:
    """Return `person` (None for nobody and for a token), `may` (permitted verbs) and `roles`, both separated by spaces,
    `waiting` (how many approval requests this person can decide now), `waiting_for_anybody` (how many there are),
    `waiting_in_demo` (of all, those of the demo), `barred` (how many more wait for somebody else's decision),
    `waiting_since` (when the oldest was made), `escalated` (how many were escalated to one of their roles), and
    `redactions` (how many redactions wait for them as the second person)."""
    who = getattr(request, "user", None)
    if who is None or not who.is_authenticated:
        return {"person": None, "may": "", "roles": "", "waiting": 0, "escalated": 0}
    allowed = " ".join(verb for verb in permissions.VERBS if permissions.has_permission(who, verb))
    held = permissions.roles_of(who)
    now = pending_counts.pending_counts() if "view" in allowed.split() else {}
    barred = now.get("barred", {}).get(str(permissions.principal_of(who)), 0)
    escalated = sum(number for role, number in now.get("escalated", {}).items() if role in held)
    decidable = now.get("waiting", 0) - barred if permissions.has_permission(who, "decide") else 0
    fields = {"roles": " ".join(sorted(held)), "waiting": decidable, "escalated": escalated}
    oldest = now.get("oldest")
    fields["waiting_for_anybody"] = now.get("waiting", 0)
    fields |= {"waiting_in_demo": now.get("demo", 0), "barred": barred}
    fields |= {"waiting_since": datetime.fromisoformat(oldest) if oldest else None}
    fields["redactions"] = redaction_requests.count_for(who) if "redact" in allowed.split() else 0
    return {"person": who if isinstance(who, User) else None, "may": allowed, **fields}
