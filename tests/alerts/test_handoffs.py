"""After a handoff within a run, an alarm is about the agent that is active, not about the one that began the run."""

import pytest

from conversations.core.database_clock import database_now
from conversations.events import log
from conversations.models import Event, ToolCall
from tests.alerts.test_alarms import waiting_request
from tests.runs.test_runs import claimed
from tests.support.alerting import MINUTE, look, opened, rule

pytestmark = pytest.mark.django_db


def test_after_a_handoff_the_alarm_is_about_the_agent_that_asks(people, town):
    """Dialogue hands over to Coordinator, whose call waits."""
    for agent in ("Dialogue", "Coordinator"):
        rule("approval_waiting", after_s=60, agent=agent)
    rule("approval_waiting", after_s=60, grouping="agent")
    waiting_request(people, "flood", 5, agent="Coordinator")

    look()

    asks = ("Coordinator", "Coordinator wants to call file_incident")
    assert [(alarm.rule.agent, alarm.agent, alarm.detail) for alarm in opened()] == [
        ("Coordinator", *asks),
        ("", *asks),
    ]


def test_alarm_about_a_replay_does_not_say_that_the_agent_wants_the_call(people, town):
    rule("approval_waiting", after_s=60)
    waiting_request(people, "flood", 5)
    ToolCall.objects.update(replay_of="the-first")

    look()

    assert [alarm.detail for alarm in opened()] == ["a replay of file_incident by Dialogue waits for approval"]


def test_after_a_handoff_the_alarm_is_about_the_agent_that_makes_no_progress(settings, town):
    for agent in ("Dialogue", "Coordinator"):
        rule("run_stuck", agent=agent)
    claim = claimed()
    log.append([claim.event({"event": "agent.handoff", "from_agent": "Dialogue", "to_agent": "Coordinator"})])
    settings.CONFIG = settings.CONFIG.model_copy(update={"stuck_silence_s": 60.0})
    Event.objects.update(at=database_now() - 10 * MINUTE)

    look()

    (alarm,) = opened()
    assert (alarm.rule.agent, alarm.agent) == ("Coordinator", "Coordinator")
    assert alarm.detail == "Coordinator has made no progress for 10 min"
