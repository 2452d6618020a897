"""Where a conversation's page opens: at its end while it goes on, else at its beginning or where one left off."""

import re
import time
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from conversations.conversation import reading_position
from conversations.conversation.imported_history import LIVE_FOR
from conversations.core import principals
from conversations.models import Conversation, ReadMarker, User
from tests.dashboard.pages.test_conversation_page import KEY, seqs, store
from tests.support import teamwork
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db

MESSAGE = {"type": "message", "sender": "Rosa", "recipient": "agent:Dialogue", "content": "wet"}


@pytest.fixture
def vera() -> User:
    """Somebody who may look."""
    return person("vera", "viewer")


def over(count: int = 150, key: str = KEY) -> Conversation:
    """Make a conversation in which nothing has happened for long."""
    store(*[MESSAGE] * count, key=key)
    Conversation.objects.filter(key=key).update(last_at=time.time_ns() // 1000 - 2 * LIVE_FOR * 1_000_000)
    return Conversation.objects.get(key=key)


def opened(browser: Client, query: str = "") -> str:
    """Open the page."""
    return browser.get(reverse("conversation", args=[KEY]) + query).content.decode()


@pytest.mark.parametrize("query", ["", "?view=lanes"])
def test_one_that_is_over_opens_at_its_beginning(vera: User, query: str) -> None:
    over()

    html = opened(client_of(vera), query)

    assert seqs(html) == list(range(1, 61))
    assert re.search(r"<tail-follow [^>]*data-paused data-start=\"1\" data-has-newer>", html)


def test_one_that_goes_on_opens_at_its_end(vera: User) -> None:
    store(*[MESSAGE] * 150)

    html = opened(client_of(vera))

    assert seqs(html) == list(range(91, 151))
    assert "data-start" not in html


def test_it_opens_where_the_reader_left_off(vera: User) -> None:
    ReadMarker.objects.create(user=vera, conversation=over(), last_seq=100)

    html = opened(client_of(vera))

    assert 'data-start="101"' in html
    assert seqs(html)[0] <= 101 <= seqs(html)[-1]


def test_one_that_was_read_to_its_end_begins_again(vera: User) -> None:
    ReadMarker.objects.create(user=vera, conversation=over(), last_seq=150)

    assert seqs(opened(client_of(vera)))[0] == 1


def test_a_link_to_an_event_leads_to_that_event(vera: User) -> None:
    over()

    html = opened(client_of(vera), "?event=120")

    assert 'data-event="120"' in html
    assert "data-start" not in html
    assert 120 in seqs(html)


@pytest.mark.parametrize("change", [{"state": "paused"}, {"owner": "user:maria"}, {"is_demo": True}])
def test_one_that_a_person_holds_or_a_demo_goes_on(change: dict[str, object]) -> None:
    talk = over(1)

    Conversation.objects.filter(key=KEY).update(**change)
    talk.refresh_from_db()

    assert not reading_position.is_over(talk)


def test_one_that_waits_for_approval_goes_on() -> None:
    owner = person("owner", "admin")
    teamwork.team()
    teamwork.ask(owner, "waits")
    Conversation.objects.filter(key="waits").update(last_at=1)

    assert not reading_position.is_over(Conversation.objects.get(key="waits"))


def test_an_imported_one_is_over_at_once(vera: User) -> None:
    store(MESSAGE, MESSAGE, by=principals.import_principal("recording"))

    assert reading_position.first_shown(Conversation.objects.get(key=KEY), vera) == 1


def test_an_imported_one_that_goes_on_here_is_not_over() -> None:
    store(MESSAGE, by=principals.import_principal("recording"))
    store(MESSAGE)

    assert not reading_position.is_over(Conversation.objects.get(key=KEY))


def test_a_session_that_is_followed_while_it_happens_goes_on() -> None:
    now = datetime.now(UTC).isoformat()
    store(MESSAGE, {**MESSAGE, "created_at": now}, MESSAGE, by=principals.import_principal("session"))

    assert not reading_position.is_over(Conversation.objects.get(key=KEY))


def test_an_empty_one_shows_its_end(vera: User) -> None:
    assert reading_position.first_shown(Conversation(key="empty"), vera) == 0
