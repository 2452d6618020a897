"""Rules, alarms, deliveries and figures, for the page and the API, without secrets."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import Count

from conversations.alerts.kinds import KINDS
from conversations.alerts.rule_fields import FORMS, masked_url
from conversations.core import page_urls
from conversations.core.database_clock import database_now
from conversations.core.micros import to_datetime
from conversations.models import Alarm, AlertDelivery, AlertRule, Conversation, Shelf
from conversations.runs.policy.file_format import time_of

HOUR = 3600 * 1_000_000  # µs
MAX_COUNT = 10_000  # up to which figures count
CALM_PER_HOUR = 6  # alarms that a person can answer: one per 10 minutes (EEMUA 191)
STATES = ("open", "closed")
STATUSES = ("waiting", "failed", "delivered", "discarded")


class ShownRule(NamedTuple):
    """A rule with its alarms and deliveries in numbers."""

    rule: AlertRule
    about: str
    to: str
    shelf: Shelf | None
    open_alarms: int
    failed: int


class ShownAlarm(NamedTuple):
    """An alarm with its shelf."""

    alarm: Alarm
    label: str
    href: str
    title: str  # of the conversation of its newest case
    can_end: bool
    shelf: Shelf | None


class Figures(NamedTuple):
    """The alarm rate: how many alarms opened, and what happened to the deliveries."""

    last_hour: int
    last_day: int
    last_week: int
    open: int
    delivered_day: int
    waiting: int
    failed: int

    @property
    def is_flood(self) -> bool:
        """Return whether the last hour had more alarms than a person can handle."""
        return self.last_hour > CALM_PER_HOUR

    @property
    def per_day(self) -> float:
        """Return the daily mean of the last 7 days."""
        return round(self.last_week / 7, 1)


def rules() -> list[ShownRule]:
    """Return all rules by name."""
    return _shown(list(AlertRule.objects.filter(removed_at=None).order_by("name")))


def shown_rule(rule: AlertRule) -> ShownRule:
    """Return one rule with its figures."""
    return _shown([rule])[0]


def _shown(rows: Sequence[AlertRule]) -> list[ShownRule]:
    now = database_now()
    shelves = {shelf.rule_id: shelf for shelf in Shelf.objects.filter(group="", until__gt=now, rule__in=rows)}
    alarms = Alarm.objects.filter(closed_at=None, rule__in=rows).values("rule").annotate(count=Count("id"))
    open_alarms = {row["rule"]: row["count"] for row in alarms}
    dead = AlertDelivery.objects.filter(status="failed", rule__in=rows).values("rule").annotate(count=Count("id"))
    failed = {row["rule"]: row["count"] for row in dead}
    return [
        ShownRule(
            rule, about_of(rule), to_of(rule), shelves.get(rule.id), open_alarms.get(rule.id, 0),
            failed.get(rule.id, 0),
        )
        for rule in rows
    ]  # fmt: skip


def about_of(rule: AlertRule) -> str:
    """Return in words when a rule raises an alarm."""
    words = KINDS[rule.kind].label
    if rule.kind == "approval_waiting":
        words += f" longer than {time_of(rule.after_s)}"
    return f"{words}, {rule.agent}" if rule.agent else words


def to_of(rule: AlertRule) -> str:
    """Return in words where a rule sends to."""
    return f"{FORMS[rule.form]}: {rule.recipients or masked_url(rule)}"


def alarms(*, state: str = "open", before: int | None = None, limit: int = 50) -> tuple[list[ShownAlarm], str | None]:
    """Return alarms, newest first, and the cursor of the next page."""
    now = database_now()
    rows = Alarm.objects.select_related("rule").filter(closed_at__isnull=state == "open")
    if before is not None:
        rows = rows.filter(id__lt=before)
    page = list(rows.order_by("-id")[: limit + 1])
    shelves = {
        (shelf.rule_id, shelf.group): shelf
        for shelf in Shelf.objects.filter(rule__in={alarm.rule_id for alarm in page}, until__gt=now)
    }
    titles = Conversation.objects.titles(alarm.conversation for alarm in page)
    shown = [
        ShownAlarm(
            alarm, KINDS[alarm.kind].label, href_of(alarm), titles.get(alarm.conversation, ""),
            alarm.closed_at is None and not KINDS[alarm.kind].is_lasting, shelves.get((alarm.rule_id, alarm.group)),
        )
        for alarm in page[:limit]
    ]  # fmt: skip
    return shown, str(page[limit - 1].id) if len(page) > limit else None


def href_of(alarm: Alarm) -> str:
    """Return the address of an alarm's newest case."""
    return page_urls.event_url(alarm.conversation, alarm.seq) if alarm.conversation else ""


def deliveries(status: str, limit: int = 50) -> list[AlertDelivery]:
    """Return deliveries: `failed` are dead letters, newest first; `waiting` by due time; any other status by when they
    ended, newest first."""
    rows = AlertDelivery.objects.select_related("rule").filter(status=status, rule__removed_at=None)
    order = {"failed": "-created_at", "waiting": "due_at"}.get(status, "-done_at")
    done = {} if order != "-done_at" else {"done_at__isnull": False}
    return list(rows.filter(**done).order_by(order)[:limit])


def latest_deliveries(limit: int) -> list[AlertDelivery]:
    """Return what waits, by due time, then what was delivered or discarded, newest first; at most `limit` of each."""
    over = AlertDelivery.objects.select_related("rule").filter(status__in=("delivered", "discarded"))
    over = over.filter(rule__removed_at=None, done_at__isnull=False).order_by("-done_at")
    return [*deliveries("waiting", limit), *over[:limit]]


def figures() -> Figures:
    """Return the alarm rate; each count goes up to `MAX_COUNT`."""
    now = database_now()
    live = AlertDelivery.objects.filter(rule__removed_at=None)
    return Figures(
        last_hour=_opened_since(now - HOUR),
        last_day=_opened_since(now - 24 * HOUR),
        last_week=_opened_since(now - 168 * HOUR),
        open=_count(Alarm.objects.filter(closed_at=None)),
        delivered_day=_count(AlertDelivery.objects.filter(done_at__gt=now - 24 * HOUR, status="delivered")),
        waiting=_count(AlertDelivery.objects.filter(status="waiting")),
        failed=_count(live.filter(status="failed")),
    )


def rule_item(shown: ShownRule) -> dict[str, Any]:
    """Return a rule as JSON for the API."""
    rule = shown.rule
    return {
        "id": rule.id, "name": rule.name, "kind": rule.kind, "after_s": rule.after_s or None, "agent": rule.agent,
        "grouping": rule.grouping, "form": rule.form, "url": masked_url(rule), "recipients": rule.recipients,
        "is_enabled": rule.is_enabled, "sends_end": rule.sends_end, "version": rule.version,
        "updated_by": rule.updated_by, "updated_at": _iso(rule.updated_at),
        "shelved_until": _iso(shown.shelf.until) if shown.shelf else None, "open_alarms": shown.open_alarms,
        "dead_letters": shown.failed,
    }  # fmt: skip


def alarm_item(shown: ShownAlarm) -> dict[str, Any]:
    """Return an alarm as JSON for the API."""
    alarm = shown.alarm
    return {
        "id": alarm.id, "rule_id": alarm.rule_id, "rule": alarm.rule.name, "kind": alarm.kind, "cause": alarm.cause,
        "detail": alarm.detail, "conversation_id": alarm.conversation or None,
        "conversation_title": shown.title, "seq": alarm.seq, "agent": alarm.agent,
        "count": alarm.count, "opened_at": _iso(alarm.opened_at), "last_at": _iso(alarm.last_at),
        "closed_at": _iso(alarm.closed_at), "closed_by": alarm.closed_by, "notified_at": _iso(alarm.notified_at),
        "shelved_until": _iso(shown.shelf.until) if shown.shelf else None,
    }  # fmt: skip


def delivery_item(row: AlertDelivery) -> dict[str, Any]:
    """Return a delivery as JSON for the API."""
    return {
        "id": row.id, "rule_id": row.rule_id, "rule": row.rule.name, "subject": row.subject, "status": row.status,
        "attempts": row.attempts, "http_status": row.http_status, "error": row.error,
        "created_at": _iso(row.created_at), "done_at": _iso(row.done_at),
        "due_at": _iso(row.due_at) if row.status == "waiting" else None,
    }  # fmt: skip


def _iso(at: int | None) -> str | None:
    return None if at is None else to_datetime(at).isoformat()


def _opened_since(at: int) -> int:
    return _count(Alarm.objects.filter(opened_at__gt=at))


def _count(rows: Any) -> int:  # of any model
    return int(rows.order_by()[:MAX_COUNT].count())
