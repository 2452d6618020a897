"""What the demo touches: it removes its own conversations, and nothing that somebody else put there."""

import asyncio

import pytest

from conversations.access.authentication import Caller
from conversations.core import principals
from conversations.events import log
from conversations.models import Agent, Conversation, Event, Run
from conversations.realtime.server import ServerRuntime
from conversations.realtime.session_guard import Reader
from dashboard import demo

pytestmark = pytest.mark.django_db


def opened(key):
    log.append(
        [log.from_internal(key, {"event": "conversation.opened", "title": "T", "demo": True}, principals.SYSTEM)]
    )


def test_a_demo_conversation_is_removed_whole():
    opened("demo-1")

    demo._remove("demo-1")

    assert not Conversation.objects.exists()
    assert not Event.objects.exists()


def test_what_somebody_published_into_the_demo_stays_and_ends_it():
    opened("demo-1")
    assert demo._look() == (False, ["demo-1"])
    log.append([log.from_internal("demo-1", {"event": "log", "text": "mine"}, principals.token_principal("robot"))])

    demo._remove("demo-1")

    assert log.head("demo-1") == 2
    assert demo._look() == (True, ["demo-1"])


def test_only_the_demos_own_conversations_are_removed():
    log.append([log.from_internal("real", {"event": "log", "text": "x"}, principals.token_principal("robot"))])

    demo._remove("real")

    assert log.head("real") == 1


@pytest.mark.django_db(transaction=True)
def test_no_agent_answers_the_demo():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)
    engine = ServerRuntime()
    engine.writer.start()
    said = {"type": "message", "sender": "user:Inês", "recipient": "agent:Dialogue", "content": "a dark footpath"}

    asyncio.run(demo.Demo(engine)._publish("demo-1", said))
    engine.writer.close()

    assert log.head("demo-1") == 1
    assert not Run.objects.exists()


def test_a_request_that_takes_long_is_no_viewer_of_the_demo_and_no_socket():
    engine = ServerRuntime()
    shown, visitor = demo.Demo(engine), Caller(principals.SYSTEM, frozenset())

    with engine.watch.reading(visitor) as reader:
        assert engine.watch.guarded == {reader}
        assert not shown._has_viewers()
        assert engine.watch.admit(responses := Reader(visitor), most=1, is_response=True)
        assert engine.watch.guarded == {reader, responses}
        assert not shown._has_viewers()
        assert engine.watch.admit(Reader(visitor), most=1)
        assert shown._has_viewers()
    assert not engine.watch.guarded - engine.watch.sockets - {responses}
