"""What people do with alarms and deliveries: shelve, close, retry, discard. Each is audited."""

from django.db import transaction

from conversations.access.action_context import audited_action, check_reason
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.alerts import alarms, deliveries, dispatcher
from conversations.alerts.kinds import KINDS
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.models import Alarm, AlertDelivery, AlertRule, Shelf
from conversations.runs.policy.file_format import time_of

MAX_SHELF_S = 30 * 24 * 3600
MAX_REASON = 500  # characters


def shelve(by: Who, rule: int, seconds: int, *, alarm: int | None = None, reason: str = "") -> Shelf:
    """Send nothing of a rule, or of one alarm and its like, for so many seconds. What is still open then is sent
    then."""
    with audited_action(by, "shelve_alert", f"alert:{rule}", right="alerts") as principal:
        if not 60 <= seconds <= MAX_SHELF_S:
            raise Invalid("must be from 1 min to 30 d", field="for_s")
        check_reason(reason, MAX_REASON)
        now = database_now()
        fields = {"until": now + seconds * 1_000_000, "by": str(principal), "at": now, "reason": reason}
        group = _group(rule, alarm)
        shelf, _ = Shelf.objects.update_or_create(rule_id=rule, group=group, defaults=fields)
        details = {"for": time_of(seconds)} | ({"alarm": str(alarm)} if alarm else {})
        chain.add_entry(principal, "shelve_alert", f"alert:{rule}", reason=reason, correlation=details)
    return shelf


def unshelve(by: Who, rule: int, *, alarm: int | None = None) -> None:
    """End a shelf early."""
    with audited_action(by, "unshelve_alert", f"alert:{rule}", right="alerts") as principal:
        now = database_now()
        shelf = Shelf.objects.filter(rule_id=rule, group=_group(rule, alarm), until__gt=now)
        if not shelf.update(until=now):
            raise Conflict("this is no longer shelved")
        details = {"alarm": str(alarm)} if alarm else {}
        chain.add_entry(principal, "unshelve_alert", f"alert:{rule}", correlation=details)
        transaction.on_commit(dispatcher.wake)


def end_alarm(by: Who, number: int, *, reason: str = "") -> None:
    """Close an alarm about events; the next event opens another. An alarm about a lasting condition closes by
    itself."""
    with audited_action(by, "end_alarm", f"alarm:{number}", right="alerts") as principal:
        alarm = Alarm.objects.select_related("rule").filter(id=number).first()
        if alarm is None:
            raise NotFound("there is no such alarm")
        if KINDS[alarm.kind].is_lasting:
            raise Conflict("this alarm closes when its cause ends; you can shelve it instead")
        if not alarms.close(alarm, str(principal), database_now()):
            raise Conflict(f"{alarm.closed_by} already closed this alarm")
        chain.add_entry(principal, "end_alarm", f"alarm:{number}", reason=reason[:MAX_REASON],
                    correlation={"rule": alarm.rule.name})  # fmt: skip


def retry_delivery(by: Who, delivery: str) -> None:
    """Send a dead letter again, with as many attempts as a new delivery. Its id stays the same."""
    with audited_action(by, "retry_delivery", f"delivery:{delivery}", right="alerts") as principal:
        row = _failed(delivery)
        now = database_now()
        AlertDelivery.objects.filter(id=row.id, status="failed").update(
            status="waiting", tries_left=deliveries.MAX_TRIES, due_at=now, done_at=None
        )
        chain.add_entry(principal, "retry_delivery", f"delivery:{delivery}", correlation={"rule": row.rule.name})
        transaction.on_commit(dispatcher.wake)


def discard_delivery(by: Who, delivery: str) -> None:
    """Discard a dead letter for good."""
    with audited_action(by, "discard_delivery", f"delivery:{delivery}", right="alerts") as principal:
        row = _failed(delivery)
        AlertDelivery.objects.filter(id=row.id, status="failed").update(status="discarded")
        chain.add_entry(principal, "discard_delivery", f"delivery:{delivery}", correlation={"rule": row.rule.name})


def _failed(delivery: str) -> AlertDelivery:
    row = AlertDelivery.objects.select_related("rule").filter(id=delivery).first()
    if row is None:
        raise NotFound("there is no such delivery")
    if row.status != "failed" or row.rule.removed_at is not None:
        raise Conflict("this delivery is no longer a dead letter")
    return row


def _group(rule: int, alarm: int | None) -> str:
    """Return the group of an alarm of a rule; empty for the whole rule. Raises NotFound."""
    if not AlertRule.objects.filter(id=rule, removed_at=None).exists():
        raise NotFound("this alert rule no longer exists")
    if alarm is None:
        return ""
    row = Alarm.objects.filter(id=alarm, rule_id=rule).values_list("group", flat=True).first()
    if row is None:
        raise NotFound("there is no such alarm")
    return row
