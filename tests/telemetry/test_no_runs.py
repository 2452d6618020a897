"""What is told to have happened elsewhere, in spans and in reports, starts no run here."""

import json

import pytest

from conversations.access.authentication import Caller
from conversations.asgi import publish, published_message, telemetry
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.models import Agent, Conversation, Event, Post, Run
from conversations.telemetry import intake, otlp_protobuf
from tests.support.otlp import traces
from tests.telemetry.test_genai import weather

pytestmark = pytest.mark.django_db

COLLECTOR = Caller(Principal("token", "collector"), frozenset({"telemetry"}))


def test_a_message_in_a_span_starts_no_run_of_the_agent_that_handles_its_conversation() -> None:
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)
    opened = {"event": "conversation.opened", "id": "o1", "title": "Weather", "handler": "agent:Dialogue"}
    log.append([log.from_internal("c", opened, SYSTEM)])
    spans = otlp_protobuf.traces(traces(*weather("c"))).spans

    events, _, _ = telemetry._events_of(intake.of_spans(spans, intake.Memory()), COLLECTOR)
    log.append(events)

    assert Conversation.objects.get(key="c").handler == "agent:Dialogue"
    assert Event.objects.filter(kind="message", body__contains='"chat:c"').exists()
    assert Run.objects.count() == 0


def test_a_reported_message_starts_no_run_and_reaches_no_agent_that_it_is_for() -> None:
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)
    message = {"type": "message", "conversation_id": "c", "sender": "user:maria", "recipient": "agent:Dialogue"}
    line = json.dumps({"topic": "chat:Dialogue", "payload": message | {"content": "hello"}, "id": "m1"}).encode()

    log.append([publish._reported(published_message.parse_published(line, COLLECTOR))])

    assert [event.kind for event in Event.objects.all()] == ["message"]
    assert Run.objects.count() == 0
    assert not Post.objects.filter(topic="chat:Dialogue").exists()
