"""A rule is about what is recorded after it was saved, whatever the clocks say."""

import pytest

from conversations.alerts import edit_rules
from conversations.alerts.rule_fields import RuleFields
from conversations.models import Alarm
from tests.support.alerting import fail, later, look, opened, rule

pytestmark = pytest.mark.django_db


def fields_of(row, **more):
    return RuleFields(**{name: getattr(row, name) for name in RuleFields._fields} | more)


def test_events_from_before_the_rule_raise_none(people):
    fail()
    edit_rules.make_rule(people["admin"], fields_of(rule(removed_at=1)))

    look()

    assert opened() == []


def test_events_from_before_a_change_are_for_the_rule_as_it_was(people):
    row = rule(agent="Insights")
    fail("before", agent="Insights")
    fail("too early")

    edit_rules.change_rule(people["admin"], row.id, fields_of(row, agent=""), version=1)
    look()

    assert [alarm.conversation for alarm in Alarm.objects.all()] == ["before"]
    assert opened() == []


@pytest.mark.parametrize("made", [True, False])
def test_a_rule_that_was_saved_while_the_clock_was_ahead_is_about_what_happens_from_then_on(people, monkeypatch, made):
    row = rule(agent="Insights")
    with monkeypatch.context() as ahead:
        ahead.setattr(edit_rules, "database_now", lambda: later(60))
        if made:
            edit_rules.make_rule(people["admin"], fields_of(row, name="another", agent=""))
        else:
            edit_rules.change_rule(people["admin"], row.id, fields_of(row, agent=""), version=1)

    fail()
    look()

    assert [alarm.count for alarm in opened()] == [1]
