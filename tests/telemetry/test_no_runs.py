"""What spans tell happened elsewhere: it starts no run here."""

import pytest

from conversations.access.authentication import Caller
from conversations.asgi import telemetry
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.models import Agent, Conversation, Event, Run
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
