"""From a failed run to a signed request: the thread that evaluates, sends, and sends again."""

import time

import pytest

from conversations.alerts import deliveries, evaluation
from conversations.alerts.dispatcher import POLL_EVERY_IDLE_S, Dispatcher
from conversations.core import http_post
from conversations.core.database_clock import database_now
from conversations.models import AlarmCause, AlertDelivery
from tests.support import alerting
from tests.support.alerting import SECRET, receiving
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(settings):
    changes = {"alert_hosts": "127.0.0.1", "alert_retry_s": 0.05, "alert_timeout_s": 5.0}
    settings.CONFIG = settings.CONFIG.model_copy(update=changes)
    settings.CONFIG.__dict__.pop("alert_allow_list", None)
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def dispatcher():
    thread = Dispatcher("https://switchboard.example")
    thread.start()
    yield thread
    thread.close()


def test_a_failed_run_becomes_one_signed_request(receiver, dispatcher):
    alerting.rule(name="Failures", url=receiver.url)

    alerting.fail("broken pipe", error="the model server is away")
    until(lambda: AlertDelivery.objects.filter(status="delivered").exists())

    (post,) = receiver.posts
    assert post.is_signed_by(SECRET)
    assert abs(int(post.headers["webhook-timestamp"]) - time.time()) < 300
    assert post.payload["type"] == "alarm.opened"
    data = post.payload["data"]
    assert (data["kind"], data["conversation_id"], data["agent"]) == ("run_failed", "broken pipe", "Dialogue")
    assert (data["cause"], data["detail"]) == ("failed (error)", "the model server is away")
    assert data["url"].startswith("https://switchboard.example/conversations/")
    assert not AlarmCause.objects.exists()


def test_what_fails_is_sent_again_with_the_same_id_until_it_arrives(receiver, dispatcher):
    receiver.answers += [500, "drop", 503, 302]
    alerting.rule(url=receiver.url)

    alerting.fail()
    until(lambda: receiver.posts)

    delivery = until(lambda: AlertDelivery.objects.filter(status="delivered").first())
    assert (receiver.requests, delivery.attempts, delivery.id) == (5, 5, receiver.posts[0].id)


def test_rules_that_cannot_be_evaluated_keep_no_delivery(receiver, dispatcher, monkeypatch, caplog):
    def broken(*_, **__):
        raise ValueError("a mistake")

    monkeypatch.setattr(evaluation, "evaluate", broken)
    deliveries.enqueue(alerting.rule(url=receiver.url), "test", database_now())
    dispatcher.wake()

    until(lambda: receiver.posts)
    until(lambda: dispatcher.state == "rules cannot be evaluated: a mistake")
    assert len([record for record in caplog.records if "evaluated" in record.message]) == 1


def test_a_destination_that_is_not_allowed_is_given_up_at_once_and_never_asked(receiver, dispatcher, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"alert_hosts": ""})
    settings.CONFIG.__dict__.pop("alert_allow_list", None)
    delivery = deliveries.enqueue(alerting.rule(url=receiver.url), "test", database_now())
    dispatcher.wake()

    until(lambda: AlertDelivery.objects.filter(id=delivery.id, status="failed").exists())

    delivery.refresh_from_db()
    assert (delivery.attempts, receiver.requests) == (1, 0)
    assert delivery.error == "127.0.0.1 is not a public address; SWITCHBOARD_ALERT_HOSTS can allow it"


def test_a_receiver_that_stalls_keeps_nobody_elses_alerts(receiver, dispatcher, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"alert_timeout_s": 30.0})
    with receiving() as slow:
        slow.answers += ["stall"] * 10
        stalled, quick = alerting.rule(url=slow.url), alerting.rule(url=receiver.url)
        for _ in range(10):
            deliveries.enqueue(stalled, "test", database_now())
        deliveries.enqueue(quick, "test", database_now())
        dispatcher.wake()

        until(lambda: receiver.posts)

        until(lambda: slow.requests == deliveries.MAX_AT_ONCE_PER_RULE)
        until(lambda: AlertDelivery.objects.filter(is_sending=True).count() == deliveries.MAX_AT_ONCE_PER_RULE)
        dispatcher.close()
        assert (
            AlertDelivery.objects.filter(status="waiting", is_sending=False, due_at__lte=database_now()).count() == 10
        )


@pytest.mark.slow
def test_two_dispatchers_send_each_alert_once(receiver, dispatcher):
    other = Dispatcher("https://switchboard.example")
    other.start()
    alerting.rule(url=receiver.url)

    for number in range(30):
        alerting.fail(f"c{number}")
    until(lambda: AlertDelivery.objects.filter(status="delivered").count() == 30, within=30)
    other.close()

    assert len({post.id for post in receiver.posts}) == len(receiver.posts) == 30


def test_a_mistake_of_ours_costs_an_attempt_and_is_logged(receiver, dispatcher, monkeypatch, caplog):
    def broken(*_, **__):
        raise KeyError("a mistake")

    monkeypatch.setattr(http_post, "post", broken)
    deliveries.enqueue(alerting.rule(url=receiver.url), "test", database_now())
    dispatcher.wake()

    until(lambda: AlertDelivery.objects.filter(error__contains="internal error", attempts__gte=2).exists())
    assert "an alert could not be sent" in caplog.text


@pytest.mark.parametrize("is_removed", [False, True])
def test_without_rules_a_look_costs_one_statement(django_assert_num_queries, is_removed):
    if is_removed:
        alerting.rule(removed_at=1)
    idle = Dispatcher("https://switchboard.example")
    idle._step([])  # what is over for long is looked for at the start, and once an hour

    with django_assert_num_queries(1):
        assert idle._step([]) == (POLL_EVERY_IDLE_S, [])
    idle._loop.close()
