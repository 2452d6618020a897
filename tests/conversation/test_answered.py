"""Answering what somebody has just answered asks first; the same words are never stored twice."""

import pytest

from conversations.conversation import post_message
from conversations.core.errors import TooLate
from conversations.models import Conversation, Event
from tests.support import teamwork
from tests.support.cast import audit_summary, client_of, last_entry

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(team):
    return team["admin"]


def say(by, client_id, **more):
    return post_message.post(by, "flood", recipient="chat:flood", content="Come at nine.", client_id=client_id, **more)


def post(client, body, address="/api/v1/conversations/flood/messages"):
    body = {"recipient": "chat:flood", "content": "Come at nine.", "client_id": "1"} | body
    return client.post(address, body, content_type="application/json")


def test_who_writes_while_another_answers_is_asked(otto, ada):
    seen = say(otto, "1").seq
    other = say(otto, "2")

    with pytest.raises(TooLate) as refusal:
        say(ada, "3", seen_seq=seen)

    error = refusal.value.as_dict()
    assert (error["code"], error["did"], error["by"]) == ("answered_meanwhile", "answered", "user:otto")
    assert error["seq"] == str(other.seq)
    assert error["at"].endswith("+00:00")
    assert Event.objects.filter(principal="user:ada").count() == 0
    assert audit_summary(last_entry()) == ("user:ada", "send", "conversation:flood", "refused")


def test_who_was_asked_sends_anyway(otto, ada):
    seen = say(otto, "1").seq
    say(otto, "2")

    assert say(ada, "3", seen_seq=seen, anyway=True).is_new


@pytest.mark.parametrize("seen", [None, 2, 99])
def test_nobody_is_asked_about_what_they_have_seen_or_who_did_not_say(otto, ada, seen):
    say(otto, "1")
    say(otto, "2")

    assert say(ada, "3", seen_seq=seen).is_new


def test_ones_own_words_an_agents_and_a_strangers_ask_nothing(otto, ada):
    teamwork.team()
    seen = teamwork.say(ada)
    teamwork.claim_from_outside("flood", {"type": "message", "sender": "user:otto", "content": "I am he"})
    say(ada, "2")

    assert say(ada, "3", seen_seq=seen).is_new


def test_what_was_stored_already_is_answered_again_whoever_spoke_since(otto, ada):
    """The answer of the first try was lost: trying again must not ask whether to say it a second time."""
    seen = say(otto, "1").seq
    first = say(ada, "2", seen_seq=seen)
    say(otto, "3")

    again = say(ada, "2", seen_seq=seen)

    assert (again.seq, again.is_new) == (first.seq, False)


def test_a_new_conversation_asks_nothing(ada):
    assert say(ada, "1", seen_seq=0, title="New").is_new


def test_the_api_says_who_and_when_and_takes_it_anyway(otto, ada):
    client = client_of(ada)
    seen = say(otto, "1").seq
    other = say(otto, "2")

    answer = post(client, {"seen_seq": seen})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["by"], error["seq"]) == (
        409,
        "answered_meanwhile",
        "user:otto",
        str(other.seq),
    )
    assert post(client, {"seen_seq": seen, "anyway": True}).status_code == 201
    assert post(client, {"seen_seq": -1}).status_code == 400


def test_the_form_of_a_page_without_scripts_asks_too(otto, ada):
    client = client_of(ada)
    seen = say(otto, "1").seq
    say(otto, "2")
    form = {"to": "", "content": "Come at ten.", "client_id": "f", "seen_seq": str(seen)}
    address = "/api/v1/conversations/flood/messages"

    answer = client.post(address, form)
    sent = client.post(address, form | {"anyway": "1"})

    assert answer.status_code == 409
    assert "otto replied at" in answer.content.decode()
    assert sent.status_code == 302
    assert client.post(address, form | {"client_id": "g", "seen_seq": "x"}).status_code == 302


def test_of_two_who_send_at_once_the_second_is_asked(otto, ada):
    seen = say(otto, "1").seq

    say(otto, "2", seen_seq=seen)

    with pytest.raises(TooLate):
        say(ada, "3", seen_seq=seen)
    assert Conversation.objects.get().messages == 2
