"""Two processes evaluate the rules: the one whose look began earlier undoes nothing that the other has done since."""

import pytest

from conversations.alerts import dispatcher, evaluation
from conversations.alerts.deliveries import enqueue, lease_s
from conversations.core.database_clock import database_now
from conversations.models import AlertDelivery, Approval
from tests.alerts.test_alarms import waiting_request
from tests.support import teamwork
from tests.support.alerting import MINUTE, later, opened, rule, sent

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_look_that_began_before_a_request_was_late_does_not_close_its_alarm(people):
    teamwork.team()
    rule("approval_waiting", after_s=600, sends_end=True)
    approval = waiting_request(people, "flood", 0)
    began = database_now()
    Approval.objects.filter(id=approval.id).update(asked_at=began - 10 * MINUTE + 1)  # late in a microsecond
    evaluation.evaluate(database_now(), is_slow=False)
    assert len(opened()) == 1

    evaluation.evaluate(began, is_slow=False)

    assert len(opened()) == 1
    assert sent() == [("alarm.opened", "flood", 1)]


def test_an_alarm_of_a_clock_that_was_ahead_is_not_closed_before_its_opening(people):
    teamwork.team()
    rule("approval_waiting", after_s=600, sends_end=True)
    waiting_request(people, "flood", 9.5)
    evaluation.evaluate(later(1), is_slow=False)

    evaluation.evaluate(database_now(), is_slow=False)

    assert sent() == [("alarm.opened", "flood", 1)]


def test_a_lease_lasts_from_the_claim_however_long_the_evaluation_took(monkeypatch):
    clock = [later(0)]

    def evaluate(now, *, is_slow):
        clock[0] += MINUTE
        return False

    monkeypatch.setattr(evaluation, "evaluate", evaluate)
    monkeypatch.setattr(dispatcher, "database_now", lambda: clock[0])
    enqueue(rule(), "test", clock[0])
    sender = dispatcher.Dispatcher("https://switchboard.example")

    sender._step([])

    assert AlertDelivery.objects.get().due_at == clock[0] + int(lease_s() * 1e6)
    sender._loop.close()
