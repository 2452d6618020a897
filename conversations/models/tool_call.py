"""One invocation of a tool: a projection of tool steps."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation

BAD = ("failed", "timeout", "rejected", "blocked", "unknown")


class ToolCall(models.Model):
    """A call, ours or observed. Its arguments and output stay in the events at `called_seq` and `finished_seq`."""

    id = models.CharField(max_length=64, primary_key=True)
    conversation = models.ForeignKey(
        Conversation, models.CASCADE, db_index=False, db_constraint=False, related_name="calls"
    )
    run = models.CharField(max_length=64, null=True)
    call_id = models.TextField(null=True, help_text="the provider's text, verbatim")
    nth = models.IntegerField(default=1, help_text="which use of this call_id it is")
    agent = models.CharField(max_length=200, default="")
    name = models.CharField(max_length=200)
    namespace = models.CharField(max_length=200, null=True)
    lookup_key = models.CharField(max_length=400, null=True)
    origin = models.CharField(max_length=40, null=True)
    schema = models.CharField(max_length=64, null=True)
    called_seq = models.BigIntegerField()
    finished_seq = models.BigIntegerField(null=True)
    status = models.CharField(max_length=10)
    arguments_digest = models.CharField(max_length=64, default="")
    started_at = models.BigIntegerField(help_text="µs UTC")
    duration_ms = models.FloatField(null=True)
    replay_of = models.CharField(max_length=64, null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "call_id", "nth"], name="call_once")]
        indexes = [
            models.Index(fields=["name", "id"], name="call_by_name"),
            models.Index(fields=["agent", "id"], name="call_by_agent"),
            models.Index(fields=["schema", "id"], name="call_by_schema", condition=Q(schema__isnull=False)),
            models.Index(fields=["id"], name="call_bad", condition=Q(status__in=BAD)),
            models.Index(fields=["conversation", "called_seq"], name="call_by_seq"),
            models.Index(
                fields=["conversation", "finished_seq"], name="call_by_end", condition=Q(finished_seq__isnull=False)
            ),
            models.Index(fields=["conversation"], name="call_open", condition=Q(finished_seq__isnull=True)),
            models.Index(
                fields=["conversation", "call_id"], name="call_by_call_id", condition=Q(call_id__isnull=False)
            ),
        ]
