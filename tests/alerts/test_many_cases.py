"""Rules about a lasting condition that has more cases than are looked at once."""

import pytest

from conversations.alerts import conditions
from conversations.models import Alarm, Approval, ToolCall
from conversations.runs.budgets.evaluate import ORIGIN
from tests.support import teamwork
from tests.support.alerting import later, look, opened, rule, sent

pytestmark = pytest.mark.django_db(transaction=True)
MOST = 3


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(conditions, "MAX_CASES", MOST)


def waiting_requests(person, count):
    """Have so many runs wait for a decision, each in its conversation; the last one is Triage's."""
    teamwork.team()
    approvals = [teamwork.ask(person, f"many-{n}") for n in range(count)]
    ToolCall.objects.filter(id=approvals[-1].tool_call).update(agent="Triage")
    return approvals


def test_a_request_of_an_agent_raises_its_alarm_behind_many_of_others(people):
    waiting_requests(people["operator"], MOST + 1)
    rule("approval_waiting", after_s=60, agent="Triage", sends_end=True)

    look(2)

    assert [alarm.conversation for alarm in opened()] == [f"many-{MOST}"]


def test_a_spent_budget_of_an_agent_raises_its_alarm_behind_many_of_others(people):
    waiting_requests(people["operator"], MOST + 1)
    ToolCall.objects.update(origin=ORIGIN, status="waiting", agent="Dialogue")
    ToolCall.objects.filter(conversation__key=f"many-{MOST}").update(agent="Triage")
    rule("budget_passed", agent="Triage")

    look(2)

    assert [alarm.conversation for alarm in opened()] == [f"many-{MOST}"]


def test_an_alarm_whose_case_is_beyond_those_looked_at_stays_open(people):
    approvals = waiting_requests(people["operator"], MOST + 1)
    Approval.objects.filter(id=approvals[0].id).update(asked_at=later(1))  # the newest: not among the first
    rule("approval_waiting", after_s=60, sends_end=True)
    look(2.5)
    assert len(opened()) == MOST

    Approval.objects.filter(id=approvals[0].id).update(asked_at=1)  # the oldest: the last one is not among the first
    look(3)

    assert {alarm.conversation for alarm in opened()} == {f"many-{n}" for n in range(MOST + 1)}
    assert not Alarm.objects.exclude(closed_at=None).exists()
    assert {name for name, *_ in sent()} == {"alarm.opened"}
