"""One entry of a conversation's history."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation


class Event(models.Model):
    """An event at its `seq`. Written only by `log.append`, with raw SQL; read through `log`."""

    conversation = models.ForeignKey(
        Conversation, models.PROTECT, db_index=False, db_constraint=False, related_name="events"
    )
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=64)
    at = models.BigIntegerField(help_text="µs UTC, commit time")
    principal = models.CharField(max_length=160)
    run = models.CharField(max_length=64, null=True)
    turn = models.IntegerField(null=True)
    event_id = models.CharField(max_length=200, null=True)
    body = models.TextField()
    salt = models.BinaryField(max_length=16, null=True)
    digest = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
    erased_by = models.CharField(max_length=64, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="event_seq"),
            models.UniqueConstraint(
                fields=["conversation", "event_id"], name="event_once", condition=Q(event_id__isnull=False)
            ),
        ]
        indexes = [models.Index(fields=["conversation", "seq"], name="event_drawn", condition=~Q(kind="token"))]
