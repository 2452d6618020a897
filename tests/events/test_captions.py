"""What a conversation is called, and how busy it was of late: a fold of its events."""

import itertools
import time

import pytest

from conversations.core.principals import SYSTEM
from conversations.core.recent_activity import SPAN_US
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Conversation
from tests.events.test_log import event, message_event

pytestmark = pytest.mark.django_db


def title() -> str:
    """Return what conversation a is called, which a rebuild does not change."""
    called = Conversation.objects.get(key="a").title
    list(rebuild())
    assert Conversation.objects.get(key="a").title == called
    return called


def test_the_first_words_name_a_conversation_that_was_given_no_title() -> None:
    log.append(
        [
            message_event("a", "**Water** on Elm Street", sender="Rosa"),
            message_event("a", "I am on it"),
            message_event("a", "Done"),
        ]
    )

    assert title() == "Water on Elm Street"


def test_a_title_that_is_given_later_stands() -> None:
    log.append([message_event("a", "Water on Elm Street", sender="Rosa")])
    log.append([event("a", event="conversation.opened", title="Elm Street", principal=SYSTEM)])
    log.append([message_event("a", "And the cellar", sender="Rosa")])

    assert title() == "Elm Street"


@pytest.mark.parametrize("size", [1, 4])
def test_who_is_greeted_names_the_conversation_and_not_the_greeting(size: int) -> None:
    words = [("agent:A", "Hi! How can I help?"), ("user", "Cancel my order"), ("agent:A", "Sure"), ("user", "Thanks")]
    events = iter([message_event("a", text, sender=sender) for sender, text in words])
    while batch := list(itertools.islice(events, size)):
        log.append(batch)

    assert title() == "Cancel my order"


def test_a_person_who_comes_later_renames_nothing() -> None:
    log.append(
        [
            message_event("a", "Plan the route"),
            message_event("a", "Here it is", sender="agent:B"),
            message_event("a", "Stop", sender="Rosa"),
        ]
    )

    assert title() == "Plan the route"


def test_a_title_that_was_given_is_no_greeting() -> None:
    log.append([event("a", event="conversation.opened", title="Orders", principal=SYSTEM)])
    log.append([message_event("a", "Hi! How can I help?"), message_event("a", "Cancel my order", sender="Rosa")])

    assert title() == "Orders"


def test_instructions_and_blank_words_name_nothing() -> None:
    log.append(
        [message_event("a", "You are a helpful assistant", sender="system"), message_event("a", " ", sender="Rosa")]
    )
    log.append([event("a", event="tool_step", name="look_up", sender="agent:A")])
    assert title() == ""

    log.append([message_event("a", "Where is my bus?", sender="Rosa")])
    assert title() == "Where is my bus?"


def test_recent_events_are_counted_by_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    began = 9_000 * SPAN_US
    for spans, events in ((0, 3), (0, 1), (2, 2), (7, 1)):
        monkeypatch.setattr(time, "time_ns", lambda spans=spans: (began + spans * SPAN_US) * 1000)
        log.append([message_event("a") for _ in range(events)])

    assert Conversation.objects.get(key="a").activity == "1,0,0,0,0,2,0,4"
    list(rebuild())
    assert Conversation.objects.get(key="a").activity == "1,0,0,0,0,2,0,4"
