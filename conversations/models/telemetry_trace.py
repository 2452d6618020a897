"""What is known of the traces that exporters report. Not a fold of events."""

from django.db import models

from conversations.models.conversation import Conversation


class TelemetryTrace(models.Model):
    """A sender's trace: the conversation of its events, and the spans whose tokens are counted."""

    key = models.CharField(max_length=64, primary_key=True, help_text="SHA-256 of the sender and the trace's id")
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_constraint=False)
    counted = models.TextField(help_text="JSON, up to 200 spans of each sort")
