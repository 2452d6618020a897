"""From a failed run to a signed request: the thread that evaluates, sends, and sends again."""

import time

import pytest

from conversations.alerts.dispatcher import Dispatcher
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
