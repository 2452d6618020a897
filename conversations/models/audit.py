"""The audit chain: who did what to what, when, why, with what outcome."""

from django.db import models
from django.db.models import F


class AuditEntry(models.Model):
    """One entry of the chain. `hash` covers every other column and the previous hash (§5): the actor, acting as,
    target, reason and correlation through `digest`, so that these can be erased. Never deleted, and changed only by an
    erasure."""

    seq = models.BigIntegerField(primary_key=True)
    at = models.BigIntegerField(help_text="µs UTC")
    principal = models.CharField(max_length=160)
    acting_as = models.CharField(max_length=200, default="")
    verb = models.CharField(max_length=60)
    target = models.CharField(max_length=300)
    before = models.CharField(max_length=64, default="", help_text="SHA-256 of the state before, or empty")
    after = models.CharField(max_length=64, default="", help_text="SHA-256 of the state after, or empty")
    reason = models.TextField(default="")
    outcome = models.CharField(max_length=10, help_text="done or refused")
    correlation = models.TextField(default="", help_text="JSON: request, address, conversation, run, call")
    salt = models.BinaryField(null=True, help_text="16 random bytes; none once the entry is erased")
    digest = models.CharField(
        max_length=64, default="", help_text="SHA-256 over salt and personal columns; empty in entries of format 1"
    )
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        # On an expression, so that no walk along them can become one along the key (`auditlog.conditions`).
        indexes = [
            models.Index("principal", F("seq") + 0, name="audit_by_principal"),
            models.Index("target", F("seq") + 0, name="audit_by_target"),
        ]


class AuditHead(models.Model):
    """The single row with the end of the chain; locked last (law B)."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="")


class AuditSpan(models.Model):
    """The earliest and latest moment of a span of entries, for time ranges of the list: numbers say nothing about
    times."""

    BITS = 10  # of a seq that do not count: a span is 1,024 entries

    span = models.BigIntegerField(primary_key=True)
    earliest = models.BigIntegerField(help_text="µs UTC")
    latest = models.BigIntegerField(help_text="µs UTC")
