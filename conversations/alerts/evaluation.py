"""Evaluate all rules once. Cheap if nothing is wrong: a few queries over small indexes."""

from typing import NamedTuple

from django.db.models import Subquery

from conversations.alerts import alarms, conditions, noted_events
from conversations.alerts.kinds import KINDS
from conversations.core.database_clock import database_now
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import Alarm, AlertDelivery, AlertRule, Event, Run, Shelf

QUIET = 3600 * 1_000_000  # µs without another case after which an alarm of events ends
QUICK = ("approval_waiting", "budget_passed")  # what takes a query over a small index
KEEP = 30 * 24 * 3600 * 1_000_000  # µs that alarms and deliveries are kept when they are over
AT_A_TIME = 1000


GLANCE = """SELECT
  EXISTS(SELECT 1 FROM conversations_alertrule WHERE removed_at IS NULL AND is_enabled),
  EXISTS(SELECT 1 FROM conversations_alarmcause),
  EXISTS(SELECT 1 FROM conversations_alertdelivery WHERE status = 'waiting')"""


class Pending(NamedTuple):
    """What there is to do: rules to evaluate, noted events to process, deliveries to send now or later."""

    has_rules: bool
    has_noted_events: bool
    has_deliveries: bool


def pending() -> Pending:
    """Return what there is to do, in one statement: all that an idle server runs for alerts."""
    (exists,) = fetch_rows(GLANCE, [])
    return Pending(*map(bool, exists))


def evaluate(now: int, *, is_slow: bool) -> bool:
    """Update all alarms; return whether there is more to do at once. `is_slow`: also evaluate what takes more than a
    query and changes slowly (stuck runs, ends, shelves)."""
    is_more = noted_events.raise_alarms(now)
    for rule in AlertRule.objects.active():
        if KINDS[rule.kind].is_lasting and (is_slow or rule.kind in QUICK):
            _match(rule, now)
    if is_slow:
        _end_quiet(now)
        _notify_unshelved(now)
    return is_more


def _match(rule: AlertRule, now: int) -> None:
    cases, is_cut = conditions.cases_of(rule, now)
    if not alarms.differs(rule, alarms.grouped(rule, cases), is_cut=is_cut):
        return
    with write_transaction():
        lock_actions()
        now = max(now, database_now())  # another process may have evaluated later than we began
        if AlertRule.objects.filter(id=rule.id, version=rule.version).exists():
            cases, is_cut = conditions.cases_of(rule, now)
            alarms.match(rule, alarms.grouped(rule, cases), now, is_cut=is_cut)


def _end_quiet(now: int) -> None:
    """Close alarms about events after a quiet time, and alarms of failed runs once a later run of the agent
    succeeded."""
    events = [kind for kind, about in KINDS.items() if not about.is_lasting]
    open_alarms = Alarm.objects.filter(closed_at=None, kind__in=events).select_related("rule")
    open_alarms = open_alarms.order_by("last_at")[:AT_A_TIME]
    over = [alarm for alarm in open_alarms if alarm.last_at < now - QUIET or _went_well(alarm)]
    if not over:
        return
    with write_transaction():
        lock_actions()
        for alarm in over:
            if Alarm.objects.filter(id=alarm.id, count=alarm.count).exists():
                alarms.close(alarm, str(SYSTEM), now)


def _went_well(alarm: Alarm) -> bool:
    if alarm.kind != "run_failed" or alarm.rule.grouping != "conversation":
        return False
    failure = Event.objects.filter(conversation__key=alarm.conversation, seq=alarm.seq).values("run")
    # Runs that waited behind the failed one were queued before its end.
    failed_run = Run.objects.filter(id__in=failure).values("queued_seq")
    later = Run.objects.filter(conversation__key=alarm.conversation, queued_seq__gt=Subquery(failed_run[:1]))
    later = later.filter(ended_seq__gt=alarm.seq, status="done", kind="agent", parent_call=None)
    return later.filter(agent=alarm.agent).exists()


def _notify_unshelved(now: int) -> None:
    """Send alarms that opened while shelved and are still open when the shelf ends."""
    unshelved = Alarm.objects.unshelved(now).filter(closed_at=None, notified_at=None).select_related("rule")
    due = list(unshelved.values_list("id", flat=True)[:AT_A_TIME])
    if not due:
        return
    with write_transaction():
        lock_actions()
        for alarm in unshelved.filter(id__in=due):
            alarms.notify(alarm, now)


def forget(now: int) -> None:
    """Delete what ended long ago."""
    old = now - KEEP
    expired = AlertDelivery.objects.filter(done_at__lt=old).order_by("done_at").values_list("id", flat=True)
    closed = Alarm.objects.filter(closed_at__lt=old, alertdelivery=None).values_list("id", flat=True)
    removals = [(AlertDelivery, list(expired[:AT_A_TIME])), (Alarm, list(closed[:AT_A_TIME]))]
    shelves = list(Shelf.objects.filter(until__lt=old).values_list("id", flat=True)[:AT_A_TIME])
    if shelves or any(ids for _, ids in removals):
        with write_transaction():
            for model, ids in removals:
                model.objects.filter(id__in=ids).delete()  # type: ignore[attr-defined]  # both have a manager
            Shelf.objects.filter(id__in=shelves).delete()
