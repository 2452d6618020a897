"""The audit page: what is drawn for whom, what is verified, what leaves as a file."""

import re

import pytest
from django.test import Client

from conversations import audit, principals
from conversations.log.writing import writing
from tests.cast import client_of, last_entry

pytestmark = pytest.mark.django_db
MARIA = principals.of_user("maria")


@pytest.fixture
def browser(team) -> Client:
    """An auditor's browser."""
    return client_of(team["auditor"])


def text(answer) -> str:
    """What is drawn, without markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())


def fill(count: int) -> None:
    """Enter some."""
    with writing():
        for number in range(count):
            audit.enter(MARIA, "look", f"thing:{number}", reason=f"reason {number}", acting_as="agent:Desk")


def seqs(answer) -> list[int]:
    """The entries that are listed."""
    return [int(seq) for seq in re.findall(r'data-key="(\d+)"', answer.content.decode())]


def test_a_row_tells_who_did_what_to_what_and_why(browser):
    fill(1)

    page = browser.get("/audit/")

    assert page.status_code == 200
    for words in ("maria", "as De Desk", "look", "thing:0", "reason 0", "done", last_entry().hash[:0]):
        assert words in text(page), words
    assert last_entry().hash in page.content.decode()


def test_only_who_may_see_it_is_led_there(team):
    for role, person in team.items():
        client = client_of(person)
        may = role in ("auditor", "admin")
        if role:
            assert ('href="/audit/"' in client.get("/").content.decode()) is may, role
        for address in ("/audit/", "/audit/1/", "/audit/verification/", "/audit/export/csv", "/api/v1/audit"):
            assert (client.get(address).status_code == 403) is not may, (role, address)
