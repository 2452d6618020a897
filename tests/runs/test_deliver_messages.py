"""Messages for the next step of a run at work: which of them it takes in, and what is left of that in the record."""

import json

import pytest

from conversations.conversation import delivery_status, post_message
from conversations.conversation.delivery_status import DeliveryStatus
from conversations.core.principals import SYSTEM
from conversations.models import Agent, Conversation, Event, Run
from conversations.redaction.redact import redact
from conversations.runs import claims, deliver_messages
from tests.support import held_run
from tests.support.claiming import served_agents

pytestmark = pytest.mark.django_db
FIELDS = ("id", "status", "reason", "agent", "input_seq", "queued_seq", "ended_seq", "at_next_step", "delivered_to")


@pytest.fixture(autouse=True)
def town():
    for name in ("Dialogue", "Insights"):
        Agent.objects.create(team="town", name=name, is_entry=True, served_until=1 << 60)


def say(by, to, words, when="after_run"):
    return post_message.post(by, "c", recipient=f"agent:{to}", content=words, client_id=words, when=when).seq


def status_of(seq: int) -> DeliveryStatus:
    return delivery_status.statuses_for(Conversation.objects.get(), [seq])[seq]


def test_a_run_that_has_begun_keeps_its_message_and_goes_on_by_itself(team):
    """It was queued again with its state when its worker stopped, and another worker's run is claimed before it."""
    say(team["operator"], "Insights", "hello")
    say(team["operator"], "Dialogue", "Be quick.", when="next_step")
    (begun,) = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=1)
    claims.requeue(begun, "the worker stopped", signed_state=("state", "mac", "sdk"))
    (claim,) = claims.claim("host:2", served_agents("town", "Insights"), at_most=1)

    assert deliver_messages.deliver(claim, ["Insights", "Dialogue"], 2) == []

    assert Run.objects.filter(id=begun.run).values_list("status", "state").get() == ("queued", "state")
    assert status_of(begun.input_seq).detail == "Insights is answering an earlier message"


def test_a_message_that_was_delivered_and_redacted_still_says_where_it_went(team, admin):
    say(team["operator"], "Dialogue", "hello")
    (claim,) = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=1)
    seq = say(team["operator"], "Dialogue", "Be quick.", when="next_step")
    deliver_messages.deliver(claim, ["Dialogue"], 2)
    held_run.finish(claim, {"event": "run.done"})
    runs, status = list(Run.objects.order_by("id").values(*FIELDS)), status_of(seq)

    redact(SYSTEM, "c", list(Event.objects.values_list("seq", flat=True)), "asked for")

    assert list(Run.objects.order_by("id").values(*FIELDS)) == runs
    assert status_of(seq) == status
    assert status.words == "Delivered at step 2, finished without a reply by"
    assert admin.get("/conversations/c/").status_code == 200


def test_a_delivery_that_was_redacted_by_an_earlier_release_is_told_without_its_step(team):
    say(team["operator"], "Dialogue", "hello")
    (claim,) = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=1)
    seq = say(team["operator"], "Dialogue", "Be quick.", when="next_step")
    deliver_messages.deliver(claim, ["Dialogue"], 2)
    event = Event.objects.get(kind="run.delivered")
    body = json.loads(event.body)
    Event.objects.filter(pk=event.pk).update(body=json.dumps({n: v for n, v in body.items() if n != "step"}))

    assert status_of(seq).words == "Delivered to"
