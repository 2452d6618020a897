"""Shelves: nothing is sent of a rule or an alarm until they end, by themselves."""

import pytest

from conversations.alerts import evaluation, handle_alarms
from tests.support.alerting import fail, look, opened, rule, sent

pytestmark = pytest.mark.django_db


def test_nothing_of_a_shelved_rule_is_sent_until_the_shelf_ends(people):
    shelved = rule()
    handle_alarms.shelve(people["admin"], shelved.id, 1800, reason="a known fault")
    fail()

    look()
    look(29)
    assert (len(opened()), sent()) == (1, [])

    look(31)
    assert sent() == [("alarm.opened", "c", 1)]
    look(32)
    assert len(sent()) == 1


def test_an_alarm_that_is_over_when_its_shelf_ends_is_never_sent(people):
    shelved = rule(sends_end=True)
    handle_alarms.shelve(people["admin"], shelved.id, 7200)
    fail()
    look()
    look(61)

    look(121)

    assert (opened(), sent()) == ([], [])


@pytest.mark.parametrize("is_whole_rule", [True, False])
def test_the_end_of_an_alarm_that_was_sent_is_sent_while_it_is_shelved(people, is_whole_rule):
    shelved = rule(sends_end=True)
    fail()
    look()
    (alarm,) = opened()
    handle_alarms.shelve(people["admin"], shelved.id, 7200, alarm=None if is_whole_rule else alarm.id)

    look(61)

    assert sent() == [("alarm.opened", "c", 1), ("alarm.closed", "c", 1)]
    look(121)
    assert len(sent()) == 2


def test_one_alarm_is_shelved_and_its_like_with_it_but_no_other(people):
    noisy_rule = rule()
    fail("noisy")
    look()
    (alarm,) = opened()
    handle_alarms.shelve(people["admin"], noisy_rule.id, 3600 * 3, alarm=alarm.id)
    handle_alarms.end_alarm(people["admin"], alarm.id)
    fail("noisy")
    fail("other")

    look()

    assert [conversation for _, conversation, _ in sent()] == ["noisy", "other"]
    assert {alarm.conversation for alarm in opened(notified_at=None)} == {"noisy"}
    handle_alarms.unshelve(people["admin"], noisy_rule.id, alarm=alarm.id)
    look(0.1)
    assert [conversation for _, conversation, _ in sent()] == ["noisy", "other", "noisy"]


def test_shelving_anew_moves_the_end(people):
    shelved = rule()
    handle_alarms.shelve(people["admin"], shelved.id, 600)
    handle_alarms.shelve(people["admin"], shelved.id, 60)
    fail()

    look(2)

    assert len(sent()) == 1


def test_alarms_that_stay_shelved_hold_back_none_whose_shelf_has_ended(people, monkeypatch):
    monkeypatch.setattr(evaluation, "AT_A_TIME", 1)
    both = rule()
    for conversation in ("long", "short"):
        fail(conversation)
    handle_alarms.shelve(people["admin"], both.id, 600)
    look()
    for alarm in opened():
        seconds = 3600 * 3 if alarm.conversation == "long" else 1800
        handle_alarms.shelve(people["admin"], both.id, seconds, alarm=alarm.id)

    look(31)

    assert [conversation for _, conversation, _ in sent()] == ["short"]
