"""Addresses as people type them, which are not quite those of a page. Called by `errors` before it says "not found"."""

from django.http import HttpRequest
from django.urls import is_valid_path, reverse
from django.utils.encoding import escape_uri_path

NAMES = {  # what a page is called, where its address says something else
    "conversations": "conversations",
    "tool-calls": "calls",
    "tools": "agents",
    "statistics": "numbers",
    "operations": "ops",
    "quarantine": "quarantine",
    "budgets": "budgets",
    "grants": "people",
    "holds": "retention",
    "rules": "approval-rules",
    "login": "sign-in",
}


def page_for(request: HttpRequest) -> str | None:
    """Return the address of the page that is meant: one without its last slash, with a slash too many, or by its name;
    None if there is none."""
    path = request.path.strip("/")
    target = reverse(NAMES[path]) if path in NAMES else f"/{path}/"
    if request.method not in ("GET", "HEAD") or target == request.path or not is_valid_path(target):
        return None
    query = request.META.get("QUERY_STRING", "")
    return f"{escape_uri_path(target)}{query and f'?{query}'}"
