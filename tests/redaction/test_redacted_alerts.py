"""Alerts that a receiver has yet to take, once what they tell of was redacted."""

import json

import pytest

from conversations.alerts import deliveries, delivery_texts, handle_alarms
from conversations.models import Alarm, AlertDelivery, AlertRule
from conversations.redaction.erase_id import erase_id
from conversations.redaction.redact import redact
from conversations.redaction.scope import RedactionScope, preview
from tests.redaction.test_erase_id import ID, ida, say

__all__ = ["ida"]
pytestmark = pytest.mark.django_db(transaction=True)


def alert(seq, *, kind="run_failed", form="post", grouping="conversation"):
    """Return an alarm about an event, of which a message waits."""
    rule = AlertRule.objects.create(
        name=f"{kind} {seq}", kind=kind, form=form, grouping=grouping, since=0, updated_by="x", updated_at=0
    )
    of = {"rule": rule, "kind": kind, "opened_at": 1, "last_at": 1, "conversation": ID, "seq": seq}
    alarm = Alarm.objects.create(group="g", cause="failed (error)", detail="no room for quokka", agent="Desk", **of)
    deliveries.enqueue(rule, "alarm.opened", 1, alarm)
    return alarm


def waiting_details():
    return {
        row.rule.name: json.loads(row.body)["data"]["detail"] for row in AlertDelivery.objects.select_related("rule")
    }


@pytest.mark.parametrize("form", ["post", "slack", "email"])
def test_one_that_waits_is_sent_without_what_it_said(ida, form):
    say(ID, "no room for quokka")
    alert(1, form=form)

    redact(ida, ID, [1], "asked for")

    waiting = AlertDelivery.objects.select_related("rule").get()
    sent = (
        "".join(delivery_texts.email_text(waiting, "https://x"))
        + delivery_texts.webhook_body(waiting, "https://x").decode()
    )
    assert (waiting.status, "quokka" in sent, "failed (error)" in sent) == ("waiting", False, True)
    assert json.loads(waiting.body)["data"]["agent"] == "Desk"


@pytest.mark.parametrize("form", ["post", "slack", "email"])
def test_a_dead_letter_can_be_sent_again_without_what_it_said(ida, form):
    say(ID, "no room for quokka")
    alert(1, form=form)
    AlertDelivery.objects.update(status="failed")

    redact(ida, ID, [1], "asked for")
    letter = AlertDelivery.objects.get()
    handle_alarms.retry_delivery(ida, letter.id)

    letter.refresh_from_db()
    sent = (
        "".join(delivery_texts.email_text(letter, "https://x"))
        + delivery_texts.webhook_body(letter, "https://x").decode()
    )
    assert (letter.status, "quokka" in sent, "failed (error)" in sent) == ("waiting", False, True)


def test_one_that_was_delivered_loses_all_of_its_text(ida):
    say(ID, "no room for quokka")
    alert(1)
    AlertDelivery.objects.update(status="delivered")

    redact(ida, ID, [1], "asked for")

    assert list(AlertDelivery.objects.values_list("subject", "body")) == [("redacted", "{}")]


def test_one_about_another_event_keeps_its_detail(ida):
    for text in ("no room for quokka", "also no room", "and here"):
        say(ID, text)
    alarms = [alert(1), alert(2), alert(3, kind="run_stuck")]
    (place,) = preview(RedactionScope(conversation=ID, events=[1]))
    assert place.elsewhere["alarms"] == 2

    redact(ida, ID, [1], "asked for")

    details = {"run_failed 1": "", "run_failed 2": "no room for quokka", "run_stuck 3": ""}
    assert waiting_details() == details
    assert [Alarm.objects.get(id=alarm.id).detail for alarm in alarms] == list(details.values())


@pytest.mark.parametrize("grouping", ["conversation", "agent", "all"])
def test_no_alert_keeps_an_erased_id_wherever_its_alarm_went_on(ida, grouping):
    say(ID, "no room for quokka")
    alarm = alert(1, grouping=grouping)
    other = alert(2, grouping=grouping)
    AlertDelivery.objects.filter(alarm=other).delete()
    other.conversation, other.detail = "another", f"I know {ID}"
    deliveries.enqueue(other.rule, "alarm.opened", 1, other)
    if grouping != "conversation":
        Alarm.objects.update(conversation="another", seq=7)

    (erased,) = erase_id(ida, ID, "asked for")

    body = {row.alarm_id: json.loads(row.body)["data"] for row in AlertDelivery.objects.all()}
    assert (body[alarm.pk]["conversation_id"], body[alarm.pk]["detail"]) == (erased.conversation, "no room for quokka")
    if grouping != "conversation":
        assert body[other.pk]["detail"] == f"I know {ID}", "what is said elsewhere stays"


@pytest.mark.parametrize("grouping", ["agent", "all"])
def test_one_whose_alarm_went_on_elsewhere_is_sent_without_it(ida, grouping):
    say(ID, "no room for quokka")
    alarm = alert(1, grouping=grouping)
    Alarm.objects.filter(id=alarm.id).update(conversation="another", seq=7, detail="something else")

    redact(ida, ID, [1], "asked for")

    assert waiting_details() == {"run_failed 1": ""}
    assert Alarm.objects.get().detail == "something else"
