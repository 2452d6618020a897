"""One execution of an agent on an input: the queue, the lease and the fence are in this row (law F)."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation

EXTERNAL = "external"  # the kind that stands for an external agent, which waits for a decision
LIVE = ("running", "waiting")
UNFINISHED = ("queued", *LIVE)
BEGUN = Q(status__in=LIVE) | Q(status="queued", attempt__gt=0)  # what it knows is in its saved state, or in a worker
ENDING = ("stop", "cancel", "abort")  # what may be asked of a run that is to end, the gentlest first
FAILED = ("failed", "interrupted", "incompatible")
OVER = ("done", "delivered", "failed", "cancelled", "interrupted", "incompatible")


class RunQuerySet(models.QuerySet["Run"]):
    """Queries of workers and pages."""

    def mine(self, run: str, attempt: int) -> "RunQuerySet":
        """Keep a worker's own run while it still holds it: every write of a worker uses this."""
        return self.filter(id=run, attempt=attempt, status="running")

    def of(self, conversation: Conversation) -> "RunQuerySet":
        """Keep the unfinished runs of a conversation, in the order of their starts."""
        unfinished = self.filter(conversation=conversation, kind="agent", parent_call=None, status__in=UNFINISHED)
        return unfinished.order_by("queued_seq")


class Run(models.Model):
    """A run. Status, reason and attempt are a fold of its events; lease, team and saved state are not."""

    id = models.CharField(max_length=64, primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    kind = models.CharField(max_length=10, default="agent", help_text="agent, replay, recording, external")
    agent = models.CharField(max_length=200)
    status = models.CharField(max_length=12)
    reason = models.CharField(max_length=200, default="", help_text="why it waits, failed or was cancelled")
    parent_call = models.CharField(max_length=64, null=True, help_text="the call that a nested run belongs to")
    input_seq = models.BigIntegerField(help_text="the event it answers")
    queued_seq = models.BigIntegerField()
    at_next_step = models.BooleanField(
        default=False,
        db_default=False,
        help_text="what it answers may be delivered to the run at work instead, at that run's next step",
    )
    delivered_to = models.CharField(
        max_length=64, default="", db_default="", help_text="the run at work that took in what it was to answer"
    )
    ended_seq = models.BigIntegerField(null=True)
    attempt = models.IntegerField(default=0)
    lease_until = models.BigIntegerField(null=True, help_text="µs UTC, by the database's clock")
    worker = models.CharField(max_length=100, default="")
    team = models.CharField(
        max_length=100,
        default="",
        db_default="",
        help_text="whose worker continues it; empty: it has not begun, and any team with the agent may",
    )
    stop = models.CharField(
        max_length=10, default="", help_text="what a person asked of the worker: pause, stop, cancel or abort"
    )
    state = models.TextField(null=True, help_text="the SDK's RunState while it waits, opaque")
    state_mac = models.CharField(max_length=64, null=True, help_text="HMAC over id, sdk and state")
    sdk = models.CharField(max_length=100, null=True, help_text="SDK version, schema version, hash of the tools")

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                name="run_alone",
                condition=Q(kind="agent", parent_call__isnull=True, status__in=LIVE),
            )
        ]
        indexes = [
            models.Index(fields=["id"], name="run_queued", condition=Q(status="queued")),
            models.Index(fields=["lease_until"], name="run_leased", condition=Q(status="running")),
            models.Index(fields=["conversation", "queued_seq"], name="run_by_conversation"),
            models.Index(fields=["agent", "id"], name="run_by_agent"),
            models.Index(fields=["id"], name="run_failed", condition=Q(status__in=FAILED, parent_call__isnull=True)),
        ]

    @property
    def end_fields(self) -> dict[str, object]:
        """Return what its last event says besides the outcome: for a run that cannot run again its kind (a replay, or
        the demo's recording)."""
        return {"run_kind": self.kind} if self.kind != "agent" else {}
