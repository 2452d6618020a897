"""Redaction leaves the counters as they were, and no message is drawn as a repetition that is none."""

import pytest

from conversations.conversation.fork import fork
from conversations.core.principals import token_principal
from conversations.events import log
from conversations.events.log import reads
from conversations.events.log.rebuild import rebuild
from conversations.models import Conversation, Event
from conversations.redaction.redact import redact
from conversations.rendering.event_renderer import RepeatWatch
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)

ANSWER = {"event": "output", "agent": "Red", "text": "Four."}
MESSAGE = {"type": "message", "sender": "agent:Red", "recipient": "user:maria"}


def store(*payloads):
    for payload in payloads:
        log.append([unchecked("red", payload, token_principal("robot"))])


def repeats():
    watch = RepeatWatch()
    return [watch.of(event) for event in reads.read_after("red", 0)]


@pytest.mark.parametrize(
    ("content", "messages", "repeat"), [("bye", 2, ""), ("Four.", 1, "same")], ids=["another message", "an echo"]
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_redacted_message_counts_as_before(team, content, messages, repeat, at_once):
    store(ANSWER, {**MESSAGE, "content": content})
    assert Conversation.objects.get().messages == messages

    for seqs in [[1, 2]] if at_once or messages == 1 else [[1], [2]]:
        redact(team["admin"], "red", seqs, "asked for")

    assert set(Event.objects.filter(seq__lt=3).values_list("erased_by", flat=True)) != {None}
    assert Conversation.objects.get().messages == messages
    assert repeats()[:2] == ["", repeat]
    rebuild()
    assert Conversation.objects.get().messages == messages
    assert Conversation.objects.get(key=fork(team["operator"], "red", 2).conversation).messages == messages


@pytest.mark.parametrize(
    ("agent", "messages", "repeat"),
    [("Red", 1, "same"), ("", 1, "same"), ("Blue", 2, "")],
    ids=["its own", "nobody's", "another's"],
)
def test_a_message_is_drawn_as_a_repetition_where_it_counts_as_one(agent, messages, repeat):
    store(
        {**ANSWER, "agent": agent} if agent else {"event": "output", "text": "Four."}, {**MESSAGE, "content": "Four."}
    )

    assert Conversation.objects.get().messages == messages
    assert repeats() == ["", repeat]
