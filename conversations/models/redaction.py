"""What was redacted, and what must not be: neither is a fold of events."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation


class LegalHold(models.Model):
    """Why nothing may be taken out of a conversation, or of any; of class `regulated` for good."""

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
    """Events of one conversation whose words were taken out together. A file outside of the database has it too."""

    mark = models.CharField(max_length=64, unique=True, help_text="`erased_by` of these events")
    conversation = models.ForeignKey(Conversation, models.PROTECT, db_constraint=False, db_index=False)
    seqs = models.TextField(help_text="JSON: [seq]")
    at = models.BigIntegerField(help_text="µs UTC")
    by = models.CharField(max_length=160)
    reason = models.CharField(max_length=500)
