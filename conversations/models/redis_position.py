"""How far the recorder has read each Redis stream."""

from django.db import models


class RedisPosition(models.Model):
    """One stream. `last_id` moves in the transaction that stores what was read, and fences off a second recorder (law
    C): `UPDATE … WHERE stream=:s AND last_id=:old`; 0 rows means another one won."""

    stream = models.CharField(max_length=250, primary_key=True)
    last_id = models.CharField(max_length=41, help_text="Redis entry id, milliseconds-sequence")
    entries_read = models.BigIntegerField(default=0, help_text="the stream's entries-added when last_id was its newest")
    found_at = models.BigIntegerField(help_text="µs UTC, first contact: older entries are history and start nothing")
