"""Alert rules, their alarms, and the deliveries. `conversations.alerts` works with these.

Not folds of events: what was sent to whom stays as it is when the record is rebuilt.
"""

import hashlib
import json

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from conversations.models.conversation import Conversation


class AlertRuleQuerySet(models.QuerySet["AlertRule"]):
    """Queries of the dispatcher and pages."""

    def active(self) -> "AlertRuleQuerySet":
        """Keep the rules in force, in the order in which they were made."""
        return self.filter(removed_at=None, is_enabled=True).order_by("id")


class AlertRule(models.Model):
    """What raises an alarm, and where it is sent. `version` counts its changes."""

    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=20, help_text="approval_waiting, budget_passed, run_failed, run_stuck or record_gap"
    )
    after_s = models.IntegerField(default=0, help_text="seconds that an approval request may wait")
    agent = models.CharField(max_length=200, default="", help_text="an agent's name; empty: every agent")
    grouping = models.CharField(max_length=12, default="conversation", help_text="conversation, agent or all")
    form = models.CharField(max_length=5, help_text="post, slack or email")
    url = models.CharField(max_length=2000, default="", help_text="of a webhook; a secret")
    secret = models.CharField(max_length=100, default="", help_text="signs a webhook's requests")
    recipients = models.CharField(max_length=2000, default="", help_text="e-mail addresses, comma-separated")
    is_enabled = models.BooleanField(default=True)
    sends_end = models.BooleanField(default=False, help_text="whether the end of an alarm is sent, too")
    since = models.BigIntegerField(help_text="µs UTC; events from before raise no alarm")
    version = models.IntegerField(default=1)
    updated_by = models.CharField(max_length=160)
    updated_at = models.BigIntegerField(help_text="µs UTC")
    removed_at = models.BigIntegerField(null=True, help_text="µs UTC; its alarms stay")

    objects = AlertRuleQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="alertrule_name", condition=Q(removed_at=None))]


class AlarmCause(models.Model):
    """An event that may raise an alarm, noted in the transaction that stores it, until it is evaluated."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=20)
    at = models.BigIntegerField(help_text="µs UTC, the event's")
    run = models.CharField(max_length=64, null=True)


class AlarmQuerySet(models.QuerySet["Alarm"]):
    """Queries of the dispatcher."""

    def unshelved(self, now: int) -> "AlarmQuerySet":
        """Keep the alarms that may be sent now (µs UTC): neither they nor their whole rule are shelved."""
        own_or_whole = Q(group=OuterRef("group")) | Q(group="")
        return self.filter(~Exists(Shelf.objects.filter(own_or_whole, rule=OuterRef("rule"), until__gt=now)))


class Alarm(models.Model):
    """One cause in one place, from its first event to its end; `count` is how often it occurred."""

    rule = models.ForeignKey(AlertRule, models.CASCADE, db_index=False)
    group = models.CharField(max_length=64, help_text="SHA-256 of what it stands for")
    kind = models.CharField(max_length=20, help_text="the rule's")
    cause = models.CharField(max_length=200, help_text="what is the matter, without names or numbers of one case")
    conversation = models.CharField(max_length=200, default="", help_text="the newest case's")
    seq = models.BigIntegerField(default=0, help_text="the newest case's event")
    agent = models.CharField(max_length=200, default="", help_text="the newest case's")
    detail = models.CharField(max_length=300, default="", help_text="of the newest case")
    subjects = models.TextField(
        default="[]", help_text="JSON: what it is about as long as that lasts (approvals, runs)"
    )
    count = models.BigIntegerField(default=1)
    opened_at = models.BigIntegerField(help_text="µs UTC")
    last_at = models.BigIntegerField(help_text="µs UTC")
    closed_at = models.BigIntegerField(null=True, help_text="µs UTC")
    closed_by = models.CharField(max_length=160, default="")
    notified_at = models.BigIntegerField(null=True, help_text="µs UTC; null: shelved since it opened")

    objects = AlarmQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "group"], name="alarm_open_once", condition=Q(closed_at=None))
        ]
        indexes = [
            models.Index(fields=["opened_at"], name="alarm_by_time"),
            models.Index(fields=["last_at"], name="alarm_open", condition=Q(closed_at=None)),
            models.Index(fields=["closed_at"], name="alarm_closed", condition=Q(closed_at__isnull=False)),
        ]

    @staticmethod
    def group_of(cause: str, place: str) -> str:
        """Return the group of alarms with a cause in one place: SHA-256, lower hex. `place` is a conversation or an
        agent; empty for alarms that are not grouped by either."""
        return hashlib.sha256(json.dumps([cause, place]).encode()).hexdigest()


class Shelf(models.Model):
    """Until when nothing is sent for a rule, or for one of its alarms and its like."""

    rule = models.ForeignKey(AlertRule, models.CASCADE, db_index=False)
    group = models.CharField(max_length=64, default="", help_text="an alarm's; empty: the whole rule")
    until = models.BigIntegerField(help_text="µs UTC")
    reason = models.CharField(max_length=500, default="")
    by = models.CharField(max_length=160)
    at = models.BigIntegerField(help_text="µs UTC")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "group"], name="shelf_once")]


class AlertDelivery(models.Model):
    """One message to one destination. `attempts` fences its sender: every write of a sender names it."""

    id = models.CharField(max_length=40, primary_key=True)
    rule = models.ForeignKey(AlertRule, models.CASCADE, db_index=False)
    alarm = models.ForeignKey(Alarm, models.CASCADE, null=True, db_index=False, help_text="null: a test")
    subject = models.CharField(max_length=300, help_text="what it says, in a line")
    body = models.TextField(help_text="JSON, as it is sent by a plain POST")
    status = models.CharField(max_length=10, default="waiting", help_text="waiting, delivered, failed or discarded")
    attempts = models.IntegerField(default=0)
    tries_left = models.IntegerField(help_text="until it is a dead letter")
    due_at = models.BigIntegerField(help_text="µs UTC; while it is sent, the end of the lease")
    is_sending = models.BooleanField(default=False)
    created_at = models.BigIntegerField(help_text="µs UTC")
    done_at = models.BigIntegerField(null=True, help_text="µs UTC")
    http_status = models.IntegerField(null=True, help_text="of the last answer")
    error = models.CharField(max_length=300, default="", help_text="of the last attempt")
    reached = models.TextField(
        default="", db_default="", help_text="recipients who have the e-mail while others refuse it, comma-separated"
    )

    conversation_title = ""  # as it is when the delivery is claimed; not stored

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="delivery_due", condition=Q(status="waiting")),
            models.Index(fields=["created_at"], name="delivery_failed", condition=Q(status="failed")),
            models.Index(F("done_at").desc(), name="delivery_done", condition=Q(done_at__isnull=False)),
            models.Index(fields=["alarm"], name="delivery_by_alarm", condition=Q(alarm__isnull=False)),
        ]
