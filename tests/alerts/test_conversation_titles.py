"""Alarms and their messages name a conversation by its title as it is now; nothing keeps one that was redacted."""

import json

import pytest

from conversations.alerts import deliveries, delivery_texts
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.models import AlertDelivery, Conversation
from conversations.redaction.redact import redact
from tests.dashboard.pages.test_conversation_page import store
from tests.support.alerting import fail, later, look, rule
from tests.support.cast import client_of
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db(transaction=True)
TITLE = "Quokka on Elm Street"
SITE = "https://switchboard.example"


def alarmed(key="titled", form="post"):
    store({"type": "message", "sender": "Rosa", "recipient": "agent:Desk", "content": TITLE}, key=key)
    assert Conversation.objects.get(key=key).title == TITLE
    of = rule(form=form)
    fail(key)
    look()
    return of


def claimed(of):
    with write_transaction():
        (delivery,) = deliveries.claim(later(1), {}, 9)
    assert delivery.rule_id == of.id
    return delivery


@pytest.mark.parametrize("form", ["post", "slack"])
def test_a_webhook_names_the_conversation_by_its_title(form):
    body = json.loads(delivery_texts.webhook_body(claimed(alarmed(form=form)), SITE))

    if form == "post":
        assert (body["data"]["conversation_id"], body["data"]["conversation_title"]) == ("titled", TITLE)
    else:
        assert f"Conversation: {TITLE} (titled)" in body["blocks"][1]["text"]["text"]


def test_a_mail_names_it_too_and_a_redacted_title_is_not_sent():
    of = alarmed(form="email")
    assert TITLE not in str(AlertDelivery.objects.values())
    redact(SYSTEM, "titled", [1], "asked for")

    _, text = delivery_texts.email_text(claimed(of), SITE)

    assert TITLE not in text
    assert "(titled)" in text or "Conversation: titled" in text


def test_the_page_and_the_api_name_it(team):
    alarmed()
    admin = client_of(team["admin"])

    assert TITLE in text_of(admin.get("/alerts/"))
    assert admin.get("/api/v1/alarms").json()["items"][0]["conversation_title"] == TITLE
