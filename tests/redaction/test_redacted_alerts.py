"""Alerts that a receiver has yet to take, once what they tell of was redacted."""

import json

import pytest

from conversations.alerts import deliveries, messages
from conversations.models import Alarm, AlertDelivery, AlertRule
from conversations.redaction.redact import redact
from tests.redaction.test_erase_id import ID, ida, say

__all__ = ["ida"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("form", ["post", "slack", "email"])
def test_one_that_waits_is_sent_without_what_it_said(ida, form):
    say(ID, "no room for quokka")
    rule = AlertRule.objects.create(name="r", kind="run_failed", form=form, since=0, updated_by="x", updated_at=0)
    of = {"rule": rule, "kind": "run_failed", "opened_at": 1, "last_at": 1, "conversation": ID, "seq": 1}
    alarm = Alarm.objects.create(group="g", cause="failed (error)", detail="no room for quokka", agent="Desk", **of)
    deliveries.enqueue(rule, "alarm.opened", 1, alarm)

    redact(ida, ID, [1], "asked for")

    waiting = AlertDelivery.objects.select_related("rule").get()
    sent = "".join(messages.email_text(waiting, "https://x")) + messages.webhook_body(waiting, "https://x").decode()
    assert (waiting.status, "quokka" in sent, "failed (error)" in sent) == ("waiting", False, True)
    assert json.loads(waiting.body)["data"]["agent"] == "Desk"
