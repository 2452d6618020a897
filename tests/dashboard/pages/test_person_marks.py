"""A person has one look everywhere: an operator's where the person itself spoke, else that of anybody."""

import re

import pytest

from conversations.models import User
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.visits import words

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = {
    "list": "/",
    "transcript": "/conversations/waits/",
    "lanes": "/conversations/waits/?view=lanes",
    "timeline": "/conversations/waits/?view=timeline",
    "compared": "/compare/?a=waits&b=other",
}


def kinds(html: str, name: str) -> set[str]:
    """Return the kinds of a person's marks on a page."""
    marks = re.findall(rf'<span class="mark"[^>]*title="{name}"', html)
    return {kind for mark in marks for kind in re.findall(r'data-kind="(\w+)"', mark)}


def test_an_operator_is_one_on_every_page(people: dict[str, User]) -> None:
    teamwork.team()
    teamwork.ask(people["operator"], "waits")
    teamwork.ask(people["admin"], "other")
    browser = client_of(people["viewer"])

    seen = {page: kinds(words(browser.get(address)), "otto") for page, address in PAGES.items()}

    assert seen == {page: {"operator"} for page in PAGES}


def test_who_only_bears_an_operators_name_is_none(people: dict[str, User]) -> None:
    teamwork.claim_from_outside("flood", {"event": "user_message", "sender": "user:otto", "content": "I am Otto"})
    browser = client_of(people["viewer"])

    for address in ("/", "/conversations/flood/", "/conversations/flood/?view=timeline"):
        assert kinds(words(browser.get(address)), "otto") == {"person"}
