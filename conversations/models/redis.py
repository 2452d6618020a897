"""How far the recorder has read each Redis stream, and what it could not file."""

from django.db import models
from django.db.models import Q


class RedisPosition(models.Model):
    """One stream. `last_id` moves in the transaction that stores what was read, and is the fence between two recorders
    (law C): `UPDATE … WHERE stream=:s AND last_id=:old`, 0 rows means another one won."""

    stream = models.CharField(max_length=250, primary_key=True)
    last_id = models.CharField(max_length=41, help_text="Redis entry id, milliseconds-sequence")
    entries_read = models.BigIntegerField(default=0, help_text="the stream's entries-added when last_id was its newest")
    found_at = models.BigIntegerField(help_text="µs UTC, first contact: older entries are history and start nothing")


class Quarantine(models.Model):
    """A message that could not be stored as an event: its first 64 kB, why, and what a person did with it."""

    source = models.CharField(max_length=250, help_text="the Redis stream it was on")
    entry = models.CharField(max_length=41, help_text="its Redis entry id")
    at = models.BigIntegerField(help_text="µs UTC")
    reason = models.TextField()
    raw = models.BinaryField()
    size = models.BigIntegerField(help_text="bytes, of the whole")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the whole")
    conversation = models.CharField(
        max_length=200, null=True, help_text="whose history tells of it, where one is known"
    )
    outcome = models.CharField(max_length=10, null=True, choices=[("redriven", "redriven"), ("discarded", "discarded")])

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "entry"], name="quarantine_once")]
        indexes = [models.Index(fields=["id"], name="quarantine_open", condition=Q(outcome__isnull=True))]
