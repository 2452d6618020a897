"""Deliveries, one row each: claimed by one process at a time, retried after a pause, finally given up.

A claim moves `due_at` to the end of a lease, so what a killed process was sending becomes due again. Times are the
database's, passed by the caller; after its clock was set back, what was enqueued before is due all the same. The end of
an alarm waits while its beginning does. Everything runs inside `write_transaction()`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.query import QuerySet

from conversations.alerts import delivery_texts
from conversations.core.ids import new_id
from conversations.core.micros import to_datetime
from conversations.models import Alarm, AlertDelivery, AlertRule, Conversation

MAX_TRIES = 15
MAX_DELAY_S = 3600.0
MAX_AT_ONCE, MAX_AT_ONCE_PER_RULE = 32, 4
GONE = 410  # a receiver's word for: never again
_END = '{"type": "alarm.closed"'  # begins the body of an alarm's last delivery


class Outcome(NamedTuple):
    """How an attempt ended. `is_final`: a retry is pointless; `reached`: recipients of an e-mail that accepted it,
    although others did not."""

    delivery: str
    attempt: int
    error: str = ""  # empty: delivered
    status: int | None = None
    retry_after_s: int | None = None
    is_final: bool = False
    reached: tuple[str, ...] = ()


def enqueue(rule: AlertRule, event: str, now: int, alarm: Alarm | None = None) -> AlertDelivery:
    """Add a delivery for an alarm or a test; it is due at once."""
    delivery = _message(rule, event, now, alarm)
    delivery.save(force_insert=True)
    return delivery


def enqueue_all(rule: AlertRule, event: str, now: int, alarms: Sequence[Alarm]) -> None:
    """Add a delivery for each of these alarms."""
    AlertDelivery.objects.bulk_create([_message(rule, event, now, alarm) for alarm in alarms])


def _message(rule: AlertRule, event: str, now: int, alarm: Alarm | None) -> AlertDelivery:
    data = _data(rule, alarm)
    return AlertDelivery(
        id=f"msg_{new_id()}", rule=rule, alarm=alarm, tries_left=MAX_TRIES,
        subject=delivery_texts.subject(event, rule, data),
        body=json.dumps({"type": event, "timestamp": to_datetime(now).isoformat(), "data": data}, ensure_ascii=False),
        due_at=now, created_at=now,
    )  # fmt: skip


def lease_s() -> float:
    """Return the duration of a claim in seconds: three times as long as an attempt may take, plus 5 s."""
    return float(settings.CONFIG.alert_timeout_s) * 3 + 5


def is_due(now: int) -> bool:
    """Return whether any delivery is due."""
    return _due(now).exists()


def claim(now: int, busy: Mapping[int, int], at_most: int) -> list[AlertDelivery]:
    """Claim due deliveries, oldest first; `busy` is the number that this process is sending per rule."""
    taken: list[AlertDelivery] = []
    at_work = Counter(busy)
    while len(taken) < at_most:
        full = [rule for rule, count in at_work.items() if count >= MAX_AT_ONCE_PER_RULE]
        rows = _due(now).select_for_update(skip_locked=True, of=("self",)).select_related("rule")
        rows = rows.exclude(rule_id__in=full).order_by("due_at")
        fresh = [row for row in rows[: at_most - len(taken)] if _fits(row, at_work)]
        if not fresh:
            break
        AlertDelivery.objects.filter(id__in=[row.id for row in fresh]).update(
            attempts=F("attempts") + 1, due_at=now + int(lease_s() * 1e6), is_sending=True
        )
        taken += fresh
    keys = [json.loads(row.body).get("data", {}).get("conversation_id") or "" for row in taken]
    titles = Conversation.objects.titles(keys)  # as they are now: none is stored, so no redaction has to find them
    for row, key in zip(taken, keys, strict=True):
        row.attempts += 1
        row.conversation_title = titles.get(key, "")
    return taken


def record(outcomes: Sequence[Outcome], now: int) -> None:
    """Store the outcomes of attempts, each once. An attempt that lost its lease stores nothing."""
    for outcome in outcomes:
        mine = AlertDelivery.objects.filter(
            id=outcome.delivery, attempts=outcome.attempt, status="waiting", is_sending=True
        )
        end: dict[str, Any] = {"is_sending": False, "http_status": outcome.status, "error": outcome.error[:300]}
        row = mine.first()
        if row is None:
            continue
        if outcome.reached:
            end["reached"] = ", ".join(filter(None, [row.reached, *outcome.reached]))
        if not outcome.error:
            mine.update(status="delivered", done_at=now, **end)
        elif outcome.is_final or row.tries_left <= 1:
            mine.update(status="failed", done_at=now, tries_left=0, **end)
        else:
            due_at = now + int(_delay_s(row, outcome.retry_after_s) * 1e6)
            mine.update(tries_left=row.tries_left - 1, due_at=due_at, **end)


def release(attempts: Sequence[tuple[str, int]], now: int) -> None:
    """Release what this process was sending when it was stopped, so that another may send it at once."""
    for delivery, attempt in attempts:
        mine = AlertDelivery.objects.filter(id=delivery, attempts=attempt, status="waiting", is_sending=True)
        mine.update(due_at=now, is_sending=False)


def _due(now: int) -> QuerySet[AlertDelivery]:
    """Return the deliveries that may be sent at `now`. No pause and no lease ends later than `latest`."""
    waiting = AlertDelivery.objects.filter(status="waiting")
    latest = now + int((MAX_DELAY_S + lease_s()) * 1e6)
    is_untried = Q(tries_left=MAX_TRIES, is_sending=False)
    earlier = waiting.filter(alarm=OuterRef("alarm")).exclude(id=OuterRef("id"))
    due = waiting.filter(Q(due_at__lte=now) | Q(due_at__gt=latest) | is_untried)
    return due.exclude(Exists(earlier), body__startswith=_END)


def _fits(row: AlertDelivery, at_work: Counter[int]) -> bool:
    at_work[row.rule_id] += 1
    return at_work[row.rule_id] <= MAX_AT_ONCE_PER_RULE


def _delay_s(row: AlertDelivery, retry_after_s: int | None) -> float:
    """Return the pause before the next attempt: doubled each time, plus up to a tenth at random, and at least as long
    as the receiver asks, up to an hour."""
    pause = settings.CONFIG.alert_retry_s * 2.0 ** (MAX_TRIES - row.tries_left)
    spread = hashlib.sha256(f"{row.id} {row.attempts}".encode()).digest()[0] / 2560
    return min(max(pause * (1 + spread), retry_after_s or 0), MAX_DELAY_S)


def _data(rule: AlertRule, alarm: Alarm | None) -> dict[str, Any]:
    data: dict[str, Any] = {"rule": rule.name, "kind": rule.kind}
    if alarm is None:
        return data
    return data | {
        "alarm_id": alarm.id, "cause": alarm.cause, "count": alarm.count, "conversation_id": alarm.conversation,
        "seq": alarm.seq, "agent": alarm.agent, "detail": alarm.detail,
        "opened_at": to_datetime(alarm.opened_at).isoformat(),
        "closed_at": to_datetime(alarm.closed_at).isoformat() if alarm.closed_at else None,
    }  # fmt: skip
