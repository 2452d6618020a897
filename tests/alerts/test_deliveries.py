"""What waits to be sent: taken by one at a time, sent again after growing pauses, given up, and what each form says."""

import email.utils
import json
import threading
from collections import Counter

import pytest
from django.core import mail as outbox
from django.db import connection

from conversations.alerts import deliveries, delivery_texts, edit_rules, evaluation, handle_alarms, mail_sender, signing
from conversations.alerts.deliveries import MAX_AT_ONCE_PER_RULE, MAX_TRIES, Outcome
from conversations.alerts.rule_fields import RuleFields
from conversations.core.database_clock import database_now
from conversations.core.write_transaction import write_transaction
from conversations.models import Alarm, AlertDelivery
from tests.support import alerting
from tests.support.alerting import SECRET, Post, later, rule

pytestmark = pytest.mark.django_db

SECOND = 1_000_000  # µs
START = 1_000 * SECOND
SITE = "https://switchboard.example"


def queue(number=1, now=START, of=None):
    of = of or rule()
    return [deliveries.enqueue(of, "test", now) for _ in range(number)]


def claim(now, at_most=32, busy=None):
    with write_transaction():
        return deliveries.claim(now, busy or Counter(), at_most)


def record(outcome, now):
    with write_transaction():
        deliveries.record([outcome], now)


def state(delivery):
    delivery.refresh_from_db()
    return delivery.status, delivery.attempts


def test_a_delivery_is_taken_once_until_its_lease_ends():
    (delivery,) = queue()

    assert [row.id for row in claim(START)] == [delivery.id]
    assert claim(START + 34 * SECOND) == []

    (again,) = claim(START + 35 * SECOND)
    assert (again.id, again.attempts) == (delivery.id, 2)


def test_who_lost_the_lease_writes_nothing():
    queue()
    (first,) = claim(START)
    (second,) = claim(START + 35 * SECOND)

    record(Outcome(first.id, first.attempts, "too late"), START)
    assert state(second) == ("waiting", 2)
    record(Outcome(second.id, second.attempts), START)
    assert state(second) == ("delivered", 2)
    record(Outcome(second.id, second.attempts, "after all not"), START)
    assert state(second) == ("delivered", 2)


def test_an_outcome_that_is_written_again_counts_once():
    """As when the database goes away after it was written and before the round is over."""
    (delivery,) = queue()
    (claimed,) = claim(START)

    for _ in range(2):
        record(Outcome(claimed.id, claimed.attempts, "HTTP 500", 500), START)

    delivery.refresh_from_db()
    assert (delivery.status, delivery.tries_left) == ("waiting", MAX_TRIES - 1)


@pytest.mark.slow
def test_pauses_double_up_to_an_hour_and_the_last_failure_makes_a_dead_letter():
    (delivery,) = queue()
    now, pauses = START, []
    while delivery.status == "waiting":
        (claimed,) = claim(now)
        record(Outcome(claimed.id, claimed.attempts, "HTTP 500", 500), now)
        delivery.refresh_from_db()
        assert claim(delivery.due_at - 1) == []
        pauses.append((delivery.due_at - now) / SECOND)
        now = delivery.due_at

    assert (delivery.status, delivery.attempts, delivery.tries_left) == ("failed", MAX_TRIES, 0)
    assert (delivery.http_status, delivery.error, delivery.done_at is not None) == (500, "HTTP 500", True)
    for number, pause in enumerate(pauses[:-1]):
        usual = min(5 * 2**number, 3600)
        assert min(usual, 3600) <= pause <= min(usual * 1.1, 3600)
    assert claim(now + 10**12) == []


def test_many_that_failed_together_do_not_come_again_together():
    queued = queue(4)
    for claimed in claim(START):
        record(Outcome(claimed.id, claimed.attempts, "no"), START)

    assert len({AlertDelivery.objects.get(id=delivery.id).due_at for delivery in queued}) > 1


@pytest.mark.parametrize(("wish", "pause"), [(None, 5), (1, 5), (120, 120), (99_999, 3600)])
def test_a_receivers_wish_is_heeded_within_an_hour(wish, pause):
    (delivery,) = queue()
    (claimed,) = claim(START)

    record(Outcome(claimed.id, 1, "HTTP 429", 429, wish), START)

    delivery.refresh_from_db()
    assert pause <= (delivery.due_at - START) / SECOND <= pause * 1.1


def test_what_cannot_get_better_is_given_up_at_once():
    (delivery,) = queue()
    (claimed,) = claim(START)

    record(Outcome(claimed.id, 1, "10.0.0.1 is not a public address", is_final=True), START)

    assert state(delivery) == ("failed", 1)


def test_a_slow_receiver_does_not_keep_the_deliveries_of_others():
    slow, quick = rule(), rule()
    queue(100, of=slow)
    (other,) = queue(of=quick, now=START + 1)

    taken = claim(START + 1)

    assert Counter(row.rule_id for row in taken) == {slow.id: MAX_AT_ONCE_PER_RULE, quick.id: 1}
    assert claim(START + 2, busy=Counter({slow.id: MAX_AT_ONCE_PER_RULE})) == []
    assert taken[-1].id == other.id


def test_what_a_stopped_process_gives_back_is_due_at_once():
    queue()
    (claimed,) = claim(START)

    with write_transaction():
        deliveries.release([(claimed.id, claimed.attempts)], START + 1)

    assert [row.attempts for row in claim(START + 1)] == [2]


def test_a_dead_letter_that_is_sent_again_keeps_its_id_and_gets_all_tries(team):
    (delivery,) = queue()
    (claimed,) = claim(START)
    record(Outcome(claimed.id, 1, "gone", 410, is_final=True), START)

    handle_alarms.retry_delivery(team["admin"], delivery.id)

    (again,) = claim(database_now())
    assert (again.id, again.attempts, again.tries_left) == (delivery.id, 2, MAX_TRIES)


def test_removing_a_rule_discards_what_waits(team):
    (delivery,) = queue()
    claim(START)

    edit_rules.remove_rule(team["admin"], delivery.rule_id)
    record(Outcome(delivery.id, 1, "too late"), START)

    assert state(delivery) == ("discarded", 1)


def test_turning_a_rule_off_discards_what_waits_but_no_test(team):
    of = rule()
    alerting.fail()
    evaluation.evaluate(database_now(), is_slow=False)
    (test,) = queue(of=of, now=database_now())
    fields = RuleFields(of.name, of.kind, of.form, agent=of.agent, grouping=of.grouping, is_enabled=False)

    edit_rules.change_rule(team["admin"], of.id, fields, version=1)

    assert [row.id for row in claim(database_now())] == [test.id]
    discarded = AlertDelivery.objects.get(status="discarded")
    assert (discarded.error, discarded.alarm.closed_by) == ("the rule was turned off", "user:ada")


def test_a_change_of_a_rule_that_stays_on_keeps_what_waits(team):
    of = rule()
    alerting.fail()
    evaluation.evaluate(database_now(), is_slow=False)

    fields = RuleFields(of.name, of.kind, of.form, grouping="all")
    edit_rules.change_rule(team["admin"], of.id, fields, version=1)

    assert len(claim(database_now())) == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_who_claim_at_once_each_delivery_is_anothers():
    rules = [rule() for _ in range(8)]
    for each in rules:
        queue(4, of=each)
    taken, begin = [], threading.Barrier(6)

    def work():
        begin.wait(30)
        while rows := claim(START, at_most=3):
            taken.extend(row.id for row in rows)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(taken), len(set(taken))) == (32, 32)


# What is sent


def alarm_delivery(form="post", **more):
    of = rule(form=form, name="Failures", **more)
    alerting.fail("a/b ü <!channel>", "<b>Dialogue</b>", error="see <http://evil|here> & run `rm`\u202e")
    evaluation.evaluate(database_now(), is_slow=False)
    return AlertDelivery.objects.select_related("rule").get(rule=of)


def test_a_plain_post_says_what_is_the_matter_and_where():
    delivery = alarm_delivery()
    payload = json.loads(delivery_texts.webhook_body(delivery, SITE))

    assert (payload["type"], set(payload)) == ("alarm.opened", {"type", "timestamp", "data"})
    data = payload["data"]
    assert (data["rule"], data["kind"], data["count"]) == ("Failures", "run_failed", 1)
    assert data["conversation_id"] == "a/b ü <!channel>"
    assert data["url"].startswith(f"{SITE}/conversations/~")
    assert data["url"].endswith(f"?event={data['seq']}#e{data['seq']}")


def test_the_signature_is_verified_by_the_specification_alone():
    body = delivery_texts.webhook_body(alarm_delivery(), SITE)
    headers = signing.headers(SECRET, "msg_1", body, 1_700_000_000)

    assert Post("/", headers, body).is_signed_by(SECRET)
    assert not Post("/", headers, body + b" ").is_signed_by(SECRET)
    assert not Post("/", headers | {"webhook-id": "msg_2"}, body).is_signed_by(SECRET)
    assert not Post("/", headers | {"webhook-timestamp": "1700000001"}, body).is_signed_by(SECRET)
    assert not Post("/", headers, body).is_signed_by(signing.new_secret())


def test_the_signature_is_the_one_of_the_specifications_example():
    """The test vector that the libraries of Standard Webhooks share."""
    signature = signing.signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        1614265330,
    )

    assert signature == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_secrets_differ_and_are_masked_wherever_they_stand():
    secrets = {signing.new_secret() for _ in range(20)}

    assert len(secrets) == 20
    for secret in secrets:
        assert secret.removeprefix("whsec_").isalnum()
        assert secret[6:] not in deliveries_mask(f"the secret is {secret}, keep it")


def deliveries_mask(text):
    from conversations.core.secret_masking import mask

    return mask(text)


def test_slack_gets_text_that_mentions_nobody_and_hides_no_link():
    payload = json.loads(delivery_texts.webhook_body(alarm_delivery("slack"), SITE))

    assert "<" not in payload["text"]
    *facts, link = payload["blocks"]
    assert {block["text"]["type"] for block in facts} == {"plain_text"}
    assert any("a/b ü <!channel>" in block["text"]["text"] for block in facts)
    assert "\u202e" not in json.dumps(payload, ensure_ascii=False)
    assert link["text"]["text"].startswith(f"<{SITE}/conversations/~")
    assert link["text"]["text"].count("<") == 1


def test_an_email_is_plain_text_with_one_message_id():
    delivery = alarm_delivery("email", url="", secret="", recipients="ops@example.com, night@example.com")

    mail_sender.send(delivery, SITE, 1.0)
    mail_sender.send(delivery, SITE, 1.0)

    first, second = outbox.outbox
    assert first.to == ["ops@example.com", "night@example.com"]
    assert first.subject == "[Switchboard] Run failed, <b>Dialogue</b>: failed (error)"
    assert f"{SITE}/conversations/~" in first.body
    assert first.message()["Message-ID"] == second.message()["Message-ID"] == f"<{delivery.id}@localhost>"
    assert email.utils.parseaddr(first.message()["From"])[1] == "switchboard@localhost"


def test_a_name_cannot_add_a_header_to_an_email():
    of = rule(form="email", recipients="ops@example.com")
    delivery = deliveries.enqueue(of, "test", START)
    AlertDelivery.objects.update(subject="Run failed\r\nBcc: everybody@example.com")
    delivery = AlertDelivery.objects.select_related("rule").get()

    mail_sender.send(delivery, SITE, 1.0)

    assert outbox.outbox[0].subject.count("\n") == 0
    assert outbox.outbox[0].message()["Bcc"] is None


def test_an_end_says_since_when_and_how_often():
    rule(sends_end=True)
    for _ in range(3):
        alerting.fail()
    evaluation.evaluate(database_now(), is_slow=True)
    evaluation.evaluate(later(61), is_slow=True)

    end = AlertDelivery.objects.select_related("rule").order_by("-created_at").first()
    data = json.loads(delivery_texts.webhook_body(end, SITE))["data"]
    assert end.subject == "Over: Run failed, Dialogue: failed (error)"
    assert (data["count"], data["closed_at"] is not None) == (3, True)
    assert Alarm.objects.get().closed_by == "system"
