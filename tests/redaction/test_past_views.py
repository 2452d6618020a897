"""Pages of a past moment are drawn once and kept; what is redacted later is gone from these, too."""

import pytest
from django.urls import reverse

from conversations.events import log
from conversations.redaction.erase_id import erase_id
from conversations.redaction.redact import redact
from tests.events.test_log import message_event
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "Hedgehog-4711"
ID = "alice@example.com"


@pytest.mark.parametrize("view", ["transcript", "lanes", "timeline"])
def test_a_page_of_the_past_forgets_what_is_redacted(team, view):
    for text in ("hello", f"my name is {SECRET}", "and goodbye"):
        log.append([message_event("past", text)])
    browser, page = client_of(team["admin"]), f"{reverse('conversation', args=['past'])}?view={view}&at=3"
    assert SECRET in browser.get(page).content.decode()

    redact(team["admin"], "past", [2], "asked for by the person")

    assert SECRET not in browser.get(page).content.decode()


def test_a_graph_of_the_past_forgets_an_id_that_is_erased(team):
    log.append([message_event(ID, "hello")])
    log.append([message_event("past", "hello", recipient=f"chat:{ID}"), message_event("past", "and goodbye")])
    browser, page = client_of(team["admin"]), f"{reverse('conversation', args=['past'])}?view=graph&at=2"
    assert ID in browser.get(page).content.decode()

    erase_id(team["admin"], ID, "asked for by the person")

    assert ID not in browser.get(page).content.decode()
