"""The search page and its API."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.cast import client_of
from tests.searching import catch_up, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(team):
    return client_of(team["viewer"])


def page(browser: Client, **query: str) -> str:
    answer = browser.get("/search/", query)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def test_a_hit_says_who_where_and_what_and_opens_in_context(browser):
    say("a desk/1", "Nothing here", "A refund for the wrong person")
    catch_up()

    html = page(browser, q="wrong person")

    assert 'href="/conversations/~YSBkZXNrLzE/?event=2#e2"' in html
    assert "A refund for the <mark>wrong</mark> <mark>person</mark>" in html
    assert "Triage" in html
    assert "a desk/1" in html
