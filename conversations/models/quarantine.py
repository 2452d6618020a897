"""Messages that the recorder could not store as events, and what a person did with each."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Substr

PREVIEW = 240  # bytes of a quarantined message that a list reads


class QuarantineQuerySet(models.QuerySet["Quarantine"]):
    """Quarantined messages by the questions that pages ask."""

    def open(self) -> "QuarantineQuerySet":
        """Keep those that nobody has settled, by the partial index."""
        return self.filter(outcome__isnull=True)

    def settled(self) -> "QuarantineQuerySet":
        """Keep those that somebody re-drove or discarded."""
        return self.filter(outcome__isnull=False)

    def matching(self, text: str) -> "QuarantineQuerySet":
        """Keep those whose stream or reason holds these words; empty keeps all."""
        return self.filter(Q(source__icontains=text) | Q(reason__icontains=text)) if text else self

    def previewed(self) -> "QuarantineQuerySet":
        """Read the first bytes as `start` and how many are kept as `kept`, instead of the whole of each."""
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
        return self.size == 0

    @property
    def is_truncated(self) -> bool:
        """Return whether only its beginning was kept, so that it cannot be read again."""
        return len(self.raw) < self.size
