"""What raises an alarm of each kind, what ends it, and how cases are grouped."""

import json

import pytest

from conversations.alerts import edit_rules, evaluation
from conversations.alerts.rule_fields import RuleFields
from conversations.core.database_clock import database_now
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM, import_principal, token_principal
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Alarm, AlarmCause, AlertDelivery, AlertRule, Approval, Conversation, Event, Run
from conversations.runs.approvals import decide
from tests.runs.test_runs import claimed
from tests.support import teamwork
from tests.support.alerting import MINUTE, fail, later, look, lose, opened, rule, sent
from tests.support.peaks import peak
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db


# Runs that fail


@pytest.mark.parametrize(
    ("event", "fields", "cause"),
    [
        ("run.failed", {"reason": "timeout", "error": "not finished"}, "failed (timeout)"),
        ("run.interrupted", {"reason": "the worker was lost"}, "its worker was lost"),
        ("run.incompatible", {"reason": "the tool changed"}, "it could not resume"),
    ],
)
def test_each_bad_end_of_a_run_raises_an_alarm(event, fields, cause):
    rule()
    run = fail()  # its row
    Alarm.objects.all().delete()
    AlarmCause.objects.all().delete()
    body = {"event": event, "id": new_id(), "run_id": run, "agent": "Dialogue", **fields}
    log.append([log.from_internal("c", body, SYSTEM)])

    look()

    (alarm,) = opened()
    assert (alarm.cause, alarm.conversation, alarm.agent, alarm.seq) == (cause, "c", "Dialogue", 3)
    assert sent() == [("alarm.opened", "c", 1)]


def test_a_run_that_ends_well_or_was_stopped_raises_none():
    rule()
    run = fail()
    AlarmCause.objects.all().delete()
    for event in ("run.done", "run.cancelled"):
        body = {"event": event, "id": new_id(), "run_id": run, "agent": "Dialogue"}
        log.append([log.from_internal("c", body, SYSTEM)])

    assert not AlarmCause.objects.exists()


def test_a_claim_an_import_and_a_rebuild_raise_none():
    rule()
    rule("record_gap")
    for kind, principal in (("run.failed", token_principal("robot")), ("record.gap", import_principal("file"))):
        log.append([unchecked("c", {"event": kind, "run_id": "r", "agent": "Dialogue", "reason": "x"}, principal)])
    assert not AlarmCause.objects.exists()

    fail()
    look()
    list(rebuild())
    look()

    assert not AlarmCause.objects.exists()
    assert [alarm.count for alarm in opened()] == [1]


def test_the_demo_a_replay_and_a_run_inside_a_call_raise_none():
    rule()
    fail("demo")
    Conversation.objects.filter(key="demo").update(is_demo=True)
    Run.objects.filter(id=fail("replay")).update(kind="replay")
    Run.objects.filter(id=fail("nested")).update(parent_call="call-1")

    look()

    assert opened() == []
    assert not AlarmCause.objects.exists()


def test_a_rule_is_about_its_agent_only():
    rule(agent="Insights")
    fail(agent="Dialogue")
    fail("other", agent="Insights")

    look()

    assert [alarm.conversation for alarm in opened()] == ["other"]


def test_a_rule_that_is_off_or_removed_raises_none():
    rule(is_enabled=False)
    rule(removed_at=1)
    fail()

    look()

    assert opened() == []
    assert not AlarmCause.objects.exists()


def test_the_error_that_an_alarm_repeats_is_short_and_has_no_secret():
    rule()
    fail(error="Authorization: Bearer sk-abcdefgh12345678 " + "x" * 1000)

    look()

    (alarm,) = opened()
    assert len(alarm.detail) <= 200
    assert "sk-abc" not in AlertDelivery.objects.get().body


def test_what_no_column_can_hold_is_replaced():
    rule()
    fail(error="a\0b c", reason="x\0y")

    look()

    (alarm,) = opened()
    assert (alarm.cause, alarm.detail) == ("failed (x\ufffdy)", "a\ufffdb c")


def test_a_later_run_that_goes_well_ends_the_alarm(town):
    rule(sends_end=True)
    fail()
    look()
    claim = claimed()
    body = {"event": "run.done", "id": new_id(), "run_id": claim.run, "agent": "Dialogue"}
    log.append([log.from_internal("c", body, SYSTEM)])
    Run.objects.filter(id=claim.run).update(status="done")

    look()

    assert opened() == []
    assert [kind for kind, *_ in sent()] == ["alarm.opened", "alarm.closed"]


def append_run_event(event, run, **fields):
    """Have the record hold an event of one of Dialogue's runs."""
    body = {"event": event, "id": new_id(), "run_id": run, "agent": "Dialogue", **fields}
    log.append([log.from_internal("c", body, SYSTEM)])


@pytest.mark.slow
def test_of_many_failures_nothing_but_their_own_events_is_read():
    rule(grouping="all")
    text = {"event": "output", "agent": "Dialogue", "text": "x" * 200_000}
    for number in range(15):
        log.append([log.from_internal(f"c{number}", {"id": new_id(), **text}, SYSTEM) for _ in range(2 * number)])
        fail(f"c{number}")
        log.append([log.from_internal(f"c{number}", {"id": new_id(), **text}, SYSTEM) for _ in range(30 - 2 * number)])

    with peak() as highest:
        look(is_slow=False)

    assert [alarm.count for alarm in opened()] == [15]
    assert highest.mib < 10  # events of the same numbers in all these conversations have 40 MiB


def test_a_run_that_waited_behind_the_failed_one_ends_the_alarm_as_well():
    rule()
    failed, waiting = new_id(), new_id()
    for run in (failed, waiting):
        append_run_event("run.queued", run, input_seq=0)
    append_run_event("run.failed", failed, reason="error")
    look()
    assert len(opened()) == 1

    append_run_event("run.done", waiting)
    look()

    assert opened() == []


@pytest.mark.parametrize("fields", [{"kind": "replay"}, {"parent_call": "call-1"}])
def test_a_replay_or_a_run_inside_a_call_that_goes_well_does_not_end_the_alarm(fields):
    rule()
    fail()
    look()
    run = new_id()
    append_run_event("run.queued", run, input_seq=0)
    append_run_event("run.done", run)
    Run.objects.filter(id=run).update(**fields)

    look()

    assert len(opened()) == 1


def test_a_quiet_hour_ends_the_alarm_and_the_next_failure_opens_another():
    rule()
    fail()
    look()
    look(59)
    assert len(opened()) == 1

    look(61)
    assert opened() == []
    fail()
    look(61)

    assert [alarm.count for alarm in Alarm.objects.order_by("id")] == [1, 1]
    assert len(sent()) == 2


# Grouping


@pytest.mark.parametrize(
    ("grouping", "alarms"),
    [
        ("conversation", [("a", 3), ("b", 1), ("b", 1)]),
        ("agent", [("a", 1), ("b", 1), ("b", 3)]),
        ("all", [("b", 1), ("b", 4)]),
    ],
)
def test_cases_of_one_cause_are_one_alarm_with_a_count(grouping, alarms):
    rule(grouping=grouping)
    fail("a", "Dialogue")
    fail("a", "Insights")
    fail("a", "Dialogue")
    fail("b", "Dialogue")
    fail("b", "Scribe", reason="timeout")

    look()

    assert sorted((alarm.conversation, alarm.count) for alarm in opened()) == alarms
    assert len(sent()) == len(alarms)


def test_a_flood_counts_on_and_sends_nothing_more():
    rule(grouping="all")
    for number in range(50):
        fail(f"c{number}")
        if number % 10 == 0:
            look(is_slow=False)

    look()

    assert [(alarm.count, alarm.conversation) for alarm in opened()] == [(50, "c49")]
    assert len(sent()) == 1


@pytest.mark.slow
def test_more_than_one_round_of_causes_is_taken_completely():
    rule(grouping="all")
    run = fail()
    failed = {"event": "run.failed", "run_id": run, "agent": "Dialogue", "reason": "error"}
    log.append([log.from_internal("c", failed | {"id": new_id()}, SYSTEM) for _ in range(1200)])

    look()

    assert [alarm.count for alarm in opened()] == [1201]
    assert not AlarmCause.objects.exists()


# Gaps


def test_a_gap_in_the_record_raises_an_alarm():
    rule("record_gap")
    lose(lost=1234)
    lose(lost=None)

    look()

    (alarm,) = opened()
    assert (alarm.cause, alarm.count) == ("trimmed", 2)
    assert alarm.detail == "events lost: they were trimmed"


# Approval requests


def waiting_request(people, key, minutes, **fields):
    approval = teamwork.ask(people["operator"], key=key, **fields)
    Approval.objects.filter(id=approval.id).update(asked_at=database_now() - int(minutes * MINUTE))
    return approval


def test_a_request_that_waits_too_long_raises_an_alarm_that_ends_with_the_decision(people, town):
    rule("approval_waiting", after_s=600, sends_end=True)
    approval = waiting_request(people, "flood", 9)
    look()
    assert opened() == []

    look(2)
    (alarm,) = opened()
    assert (alarm.conversation, alarm.cause) == ("flood", "waiting for a decision longer than 10 min")
    assert "wants to call" in alarm.detail
    look(3)
    decide.decide(people["approver"], approval.id, "reject")
    look(4)

    assert opened() == []
    assert sent() == [("alarm.opened", "flood", 1), ("alarm.closed", "flood", 1)]


def test_requests_are_counted_once_each_and_the_alarm_lasts_until_the_last_is_decided(people, town):
    rule("approval_waiting", after_s=60, grouping="agent")
    first = waiting_request(people, "one", 5)
    look()
    second = waiting_request(people, "two", 5)
    look()
    look()
    assert [alarm.count for alarm in opened()] == [2]

    decide.decide(people["approver"], first.id, "reject")
    look()
    assert [json.loads(alarm.subjects) for alarm in opened()] == [[second.id]]
    decide.decide(people["approver"], second.id, "reject")
    look()

    assert opened() == []
    assert len(sent()) == 1


# Stuck runs


def test_a_run_that_makes_no_progress_raises_an_alarm_that_ends_with_it(settings, town):
    rule("run_stuck")
    claim = claimed()
    look()
    assert opened() == []

    settings.CONFIG = settings.CONFIG.model_copy(update={"stuck_silence_s": 60.0})
    Event.objects.update(at=database_now() - 10 * MINUTE)
    look()
    (alarm,) = opened()
    assert (alarm.cause, alarm.agent) == ("makes no progress", "Dialogue")
    assert alarm.detail == "Dialogue has made no progress for 10 min"

    Run.objects.filter(id=claim.run).update(status="done")
    look()
    assert opened() == []


# What people change


def test_a_rule_that_is_changed_to_be_about_something_else_ends_its_alarms(people):
    changed = rule()
    fail()
    look()
    fields = RuleFields(changed.name, "record_gap", "post")

    edit_rules.change_rule(people["admin"], changed.id, fields, version=1)

    (alarm,) = Alarm.objects.all()
    assert alarm.closed_by == "user:ada"
    assert AlertRule.objects.get().since >= alarm.opened_at


def test_alarms_and_deliveries_that_are_over_for_30_days_are_forgotten():
    rule()
    fail()
    look()
    look(61)
    AlertDelivery.objects.update(status="delivered", done_at=database_now())

    evaluation.forget(later(29 * 24 * 60))
    assert (Alarm.objects.count(), AlertDelivery.objects.count()) == (1, 1)
    evaluation.forget(later(31 * 24 * 60))
    evaluation.forget(later(31 * 24 * 60))

    assert (Alarm.objects.count(), AlertDelivery.objects.count()) == (0, 0)


def test_a_look_at_nothing_costs_a_few_queries(django_assert_max_num_queries):
    rule()
    rule("approval_waiting", after_s=60)

    with django_assert_max_num_queries(5):
        evaluation.evaluate(database_now(), is_slow=False)
