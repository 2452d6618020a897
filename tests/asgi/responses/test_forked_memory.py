"""What a request remembers that names a fork which a person made: the responses that were copied into it."""

import pytest

from conversations.conversation import fork
from conversations.models import Conversation, Event, Response, ToolCall
from conversations.redaction import redact
from tests.asgi.responses.test_responses_endpoint_memory import RAIN, message_texts, output
from tests.support.response_desk import desk_open

pytestmark = pytest.mark.django_db(transaction=True)
FIRST = ["one", "You said: one"]
SECOND = ["more", "You said: more"]


@pytest.fixture
def desk():
    with desk_open() as opened:
        yield opened


def forked(people, key, at=None):
    """Have a person fork a conversation, at its head by default; return the fork's id."""
    head = Conversation.objects.get(key=key).head_seq
    return fork.fork(people["operator"], key, at or head).conversation


def remembered_in(desk, conversation):
    return message_texts(desk.create("and then", conversation=conversation).json["id"])[:-2]


def test_a_fork_remembers_what_was_said_before_it_and_not_after(desk, people):
    desk.create("one", conversation="c")
    early = forked(people, "c")
    desk.create("more", conversation="c")

    assert remembered_in(desk, early) == FIRST
    assert remembered_in(desk, early) == [*FIRST, "and then", "You said: and then"]
    assert remembered_in(desk, "c") == [*FIRST, *SECOND]


def test_a_fork_of_a_fork_remembers_what_both_copied(desk, people):
    desk.create("one", conversation="c")
    at = Conversation.objects.get(key="c").head_seq
    desk.create("more", conversation="c")
    whole = forked(people, "c")

    assert remembered_in(desk, forked(people, whole)) == [*FIRST, *SECOND]
    assert remembered_in(desk, forked(people, whole, at)) == FIRST


def test_a_response_that_was_not_copied_to_its_end_is_not_remembered(desk, people):
    response = desk.create("one", conversation="c").json["id"]

    assert remembered_in(desk, forked(people, "c", Response.objects.get(id=response).out_seq - 1)) == []


def test_the_output_of_a_copied_call_is_accepted_in_the_fork(desk, people):
    desk.create("call rain {}", tools=[RAIN], conversation="c")
    assert ToolCall.objects.get().status == "called"

    answer = desk.create([output()], conversation=forked(people, "c"))

    assert (answer.status, answer.json["status"]) == (200, "completed")


def test_what_continues_in_a_fork_leaves_the_first_line_in_its_conversation(desk, people):
    first = desk.create("one", conversation="c").json["id"]
    remembered_in(desk, forked(people, "c"))

    second = desk.create("more", previous_response_id=first).json["id"]

    assert Response.objects.get(id=second).conversation.key == "c"


@pytest.mark.slow
def test_what_was_redacted_in_the_fork_is_not_remembered_there(desk, people):
    desk.create("one", conversation="c")
    copy = forked(people, "c")
    request = Event.objects.get(conversation__key=copy, kind="response.received")
    redact.redact(people["admin"], copy, [request.seq], "a name")

    assert remembered_in(desk, copy) == []
    assert remembered_in(desk, "c") == FIRST
