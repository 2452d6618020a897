"""Redactions, requests for them, legal holds and retention rules: none is a fold of events."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation


class LegalHold(models.Model):
    """Why nothing may be redacted in a conversation, or in any; permanent if of class `regulated`."""

    conversation = models.ForeignKey(Conversation, models.PROTECT, null=True, db_constraint=False, db_index=False)
    is_regulated = models.BooleanField(default=False, help_text="it is never released")
    reason = models.CharField(max_length=500)
    placed_by = models.CharField(max_length=160)
    placed_at = models.BigIntegerField(help_text="µs UTC")
    released_by = models.CharField(max_length=160, default="")
    released_at = models.BigIntegerField(null=True, help_text="µs UTC")

    class Meta:
        indexes = [models.Index(fields=["conversation"], name="hold_in_force", condition=Q(released_at=None))]


class Redaction(models.Model):
    """Events of one conversation that were redacted together, or audit entries that were erased. A file outside the
    database lists it too."""

    mark = models.CharField(max_length=64, unique=True, help_text="`erased_by` of these events")
    conversation = models.ForeignKey(
        Conversation, models.PROTECT, null=True, db_constraint=False, db_index=False,
        help_text="none: entries of the audit log",
    )  # fmt: skip
    seqs = models.TextField(help_text="JSON: [seq]")
    at = models.BigIntegerField(help_text="µs UTC")
    by = models.CharField(max_length=160)
    reason = models.CharField(max_length=500)
    field = models.CharField(max_length=200, default="", help_text="of a tool call; empty: all that the events said")
    is_folded = models.BooleanField(default=True, help_text="rows that events make were made anew after it")

    class Meta:
        indexes = [models.Index(fields=["conversation"], name="redaction_unfolded", condition=Q(is_folded=False))]


class RedactionRequest(models.Model):
    """A redaction that waits for a second person, or that one has decided."""

    scope = models.TextField(help_text="JSON: what is to be redacted; emptied of words when it is decided")
    reason = models.CharField(max_length=500)
    requested_by = models.CharField(max_length=160)
    requested_at = models.BigIntegerField(help_text="µs UTC")
    decided_by = models.CharField(max_length=160, default="")
    decided_at = models.BigIntegerField(null=True, help_text="µs UTC")  # none while what is confirmed is redacted
    is_confirmed = models.BooleanField(null=True)

    class Meta:
        indexes = [models.Index(fields=["id"], name="redaction_pending", condition=Q(decided_at=None))]


class RetentionRule(models.Model):
    """How many days data is kept before the retention job redacts it. Empty fields: any type, team or conversation."""

    days = models.IntegerField()
    kind = models.CharField(max_length=100, default="")
    team = models.CharField(max_length=200, default="", help_text="of the agent that handles the conversation")
    conversation = models.CharField(max_length=200, default="", help_text="its id")
    reason = models.CharField(max_length=500)
    made_by = models.CharField(max_length=160)
    made_at = models.BigIntegerField(help_text="µs UTC")
    removed_at = models.BigIntegerField(null=True, help_text="µs UTC")
    ran_at = models.BigIntegerField(null=True, help_text="µs UTC, when the job last went through it")
    redacted = models.BigIntegerField(default=0, help_text="events that lost their words, then")
    held = models.BigIntegerField(default=0, help_text="events that were held back, then")
