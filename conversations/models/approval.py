"""An approval request: asks whether one tool call may run, or whether a budget may be exceeded. It receives one
decision, unless it is cancelled or expires."""

from django.db import models
from django.db.models import Exists, OuterRef, Q

from conversations.models.conversation import Conversation
from conversations.models.run import Run

DECISION_WORDS = {
    "approve": "approved", "edit": "approved with edits", "reject": "rejected", "respond": "responded without running",
}  # fmt: skip


class ApprovalQuerySet(models.QuerySet["Approval"]):
    """Queries of pages."""

    def open(self) -> "ApprovalQuerySet":
        """Keep the requests that can still be decided: their runs wait, each looked up by itself."""
        return self.filter(Exists(Run.objects.filter(id=OuterRef("run"), status="waiting")), status="pending")


class Approval(models.Model):
    """An approval request: a fold of `approval.*`. Arguments and texts stay in the events at `asked_seq` and
    `decided_seq`."""

    id = models.CharField(max_length=64, primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    tool_call = models.CharField(max_length=64, unique=True)
    run = models.CharField(max_length=64)
    asked_seq = models.BigIntegerField()
    asked_at = models.BigIntegerField(help_text="µs UTC")
    deadline = models.BigIntegerField(null=True, help_text="µs UTC")
    status = models.CharField(max_length=10, default="pending", help_text="pending, decided, expired or cancelled")
    decision = models.CharField(max_length=10, null=True, help_text="approve, reject, respond or edit")
    decided_by = models.CharField(max_length=160, null=True)
    decided_at = models.BigIntegerField(null=True, help_text="µs UTC")
    decided_seq = models.BigIntegerField(null=True)
    rule = models.CharField(max_length=64, null=True, help_text="the auto-approval rule that approved it")
    escalated_to = models.CharField(max_length=20, default="", help_text="the role that was told; empty: none")
    escalated_seq = models.BigIntegerField(null=True)
    version = models.IntegerField(default=1)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="approval_pending", condition=Q(status="pending")),
            models.Index(  # few of the pending ones: a list of the latest changes looks for them once a second
                fields=["escalated_seq"],
                name="approval_escalated",
                condition=Q(status="pending", escalated_seq__isnull=False),
            ),
            models.Index(fields=["conversation", "asked_seq"], name="approval_by_conversation"),
            models.Index(fields=["run"], name="approval_by_run"),
            models.Index(fields=["rule", "id"], name="approval_by_rule", condition=Q(rule__isnull=False)),
            models.Index(fields=["decided_at"], name="approval_decided", condition=Q(decided_at__isnull=False)),
            models.Index(fields=["asked_at"], name="approval_by_time"),  # the numbers page: how long people took
        ]
