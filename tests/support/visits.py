"""Visits of a person's browser: signing in, what the account page says, what the audit log keeps of it."""

import html
import re

from conversations.access.accounts import sign_in_links
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry
from tests.support.cast import PASSWORD


def try_in(client, password=PASSWORD, name="maria", **more):
    """Sign in by a password."""
    return client.post("/sign-in/", {"username": name, "password": password, **more})


def words(response):
    """Return what a page says."""
    return html.unescape(response.content.decode())


def text_of(response):
    """Return what a page says in words alone, tags gone."""
    return words_of(response.content.decode())


def words_of(drawn: str) -> str:
    """Return what markup says, tags gone."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", drawn)).split())


def who(client):
    """Return the name the account page greets, or None when it sends to the sign-in."""
    response = client.get("/account/")
    match = re.search(r'data-person="([^"]+)"', words(response))
    return match.group(1) if match else None


def entries(**facts):
    """Return who did what to whom and how it ended, of the audit entries with these facts."""
    return list(
        AuditEntry.objects.filter(**facts).order_by("seq").values_list("principal", "verb", "target", "outcome")
    )


BY_HAND = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}  # what a browser says of a link typed or clicked


def link_for(name):
    """Make a sign-in link; return its path."""
    return f"/sign-in/link/?t={sign_in_links.make_link(SYSTEM, name)}"
