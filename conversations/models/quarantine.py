"""Quarantined messages, which the recorder could not store as events, and what a person did with each."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Substr

PREVIEW = 240  # bytes of a quarantined message that a list reads


class QuarantineQuerySet(models.QuerySet["Quarantine"]):
    """Queries of pages."""

    def open(self) -> "QuarantineQuerySet":
        """Keep messages that nobody has settled, by the partial index."""
        return self.filter(outcome__isnull=True)

    def settled(self) -> "QuarantineQuerySet":
        """Keep messages that someone retried or discarded."""
        return self.filter(outcome__isnull=False)

    def matching(self, text: str) -> "QuarantineQuerySet":
        """Keep messages whose stream or reason contains this text; an empty text keeps all."""
        return self.filter(Q(source__icontains=text) | Q(reason__icontains=text)) if text else self

    def previewed(self) -> "QuarantineQuerySet":
        """Read only the first bytes as `start` and the stored size as `kept`."""
        start = Substr("raw", 1, PREVIEW, output_field=models.BinaryField())
        return self.defer("raw").annotate(start=start, kept=Length("raw"))


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

    objects = QuarantineQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "entry"], name="quarantine_once")]
        indexes = [models.Index(fields=["id"], name="quarantine_open", condition=Q(outcome__isnull=True))]

    @property
    def is_loss(self) -> bool:
        """Return whether it stands for entries that were lost unread, so that there is no message."""
        return self.entry.startswith((">", "<"))  # `recorder.store`: after that entry, or before it

    @property
    def is_truncated(self) -> bool:
        """Return whether only its beginning was stored, so that it cannot be retried."""
        return len(self.raw) < self.size
