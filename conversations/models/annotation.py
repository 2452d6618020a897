"""Annotations: a projection of `event.annotated`."""

from django.db import models

from conversations.models.conversation import Conversation


class Annotation(models.Model):
    """An annotation. Its own event, with its text, is at `seq`; the event it is about is at `about`."""

    pk = models.CompositePrimaryKey("conversation_id", "seq")
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    seq = models.BigIntegerField()
    about = models.BigIntegerField()
    author = models.CharField(max_length=160, help_text="the principal who did it")
    thumb = models.CharField(max_length=10, help_text="up, down or withdrawn; empty: as it was")
    speaker = models.CharField(max_length=200, help_text="who said or did what it is about")
    at = models.BigIntegerField(help_text="µs UTC, commit time")

    class Meta:
        indexes = [
            models.Index(fields=["conversation", "about"], name="annotation_about"),
            models.Index(fields=["at"], name="annotation_by_time"),
        ]
