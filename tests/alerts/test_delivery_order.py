"""In which order deliveries are taken: an alarm's end after its beginning, and none later because the clock was set."""

from collections import Counter

import pytest

from conversations.alerts import alarms, deliveries
from conversations.alerts.deliveries import Outcome
from conversations.core.write_transaction import write_transaction
from conversations.models import Alarm
from tests.support.alerting import fail, later, look, rule

pytestmark = pytest.mark.django_db
SECOND = 1_000_000  # µs
HOUR = 3_600 * SECOND


def claim(now):
    is_due = deliveries.is_due(now)
    with write_transaction():
        claimed = deliveries.claim(now, Counter(), 32)
    assert is_due == bool(claimed)
    return claimed


def types(claimed):
    return [row.body.split('"')[3] for row in claimed]


def opened_and_closed(now):
    """Open an alarm, have its first delivery fail, and close it."""
    rule(sends_end=True)
    fail()
    look()
    (opening,) = claim(now)
    with write_transaction():
        deliveries.record([Outcome(opening.id, opening.attempts, "HTTP 503", 503)], now)
        alarms.close(Alarm.objects.select_related("rule").get(), "system", now)
    return opening


def test_the_end_of_an_alarm_is_not_sent_before_its_beginning():
    now = later(0)
    opening = opened_and_closed(now)

    assert claim(now + SECOND) == []
    (again,) = claim(now + 6 * SECOND)
    assert (again.id, claim(now + 6 * SECOND)) == (opening.id, [])
    with write_transaction():
        deliveries.record([Outcome(again.id, again.attempts)], now + 7 * SECOND)

    assert types(claim(now + 7 * SECOND)) == ["alarm.closed"]


def test_the_end_of_an_alarm_is_sent_after_its_beginning_was_given_up():
    now = later(0)
    opened_and_closed(now)
    (again,) = claim(now + 6 * SECOND)
    with write_transaction():
        deliveries.record([Outcome(again.id, again.attempts, "HTTP 410", 410, is_final=True)], now + 7 * SECOND)

    assert types(claim(now + 7 * SECOND)) == ["alarm.closed"]


def test_what_was_enqueued_while_the_clock_was_ahead_is_due():
    deliveries.enqueue(of := rule(), "test", later(60))

    assert [row.rule_id for row in claim(later(0))] == [of.id]


def test_a_lease_from_when_the_clock_was_far_ahead_has_ended():
    now = later(0)
    deliveries.enqueue(rule(), "test", now + 24 * HOUR)
    (lost,) = claim(now + 24 * HOUR)

    assert [row.attempts for row in claim(now)] == [lost.attempts + 1]
