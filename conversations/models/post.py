"""A message on a bus topic, as our processes published it."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation


class Post(models.Model):
    """One bus message on a `chat:`, `control:`, `signal:` or `dlq:` topic. Its text is in the event, except for topics
    that name no conversation: there `body` has it. A token that was merged with others has a post on its `stream:`
    topic: its id, its position, and in `body` its own digest with the event's salt."""

    topic = models.CharField(max_length=250)
    bus_id = models.CharField(max_length=200)
    conversation = models.ForeignKey(Conversation, models.CASCADE, null=True, db_index=False, db_constraint=False)
    event_seq = models.BigIntegerField(null=True)
    body = models.TextField(null=True)
    sent_at = models.BigIntegerField(null=True, help_text="µs UTC, when the relay put it on Redis")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["topic", "bus_id"], name="post_once")]
        indexes = [
            models.Index(fields=["topic", "id"], name="post_by_topic"),
            models.Index(fields=["id"], name="post_unsent", condition=Q(sent_at__isnull=True)),
            models.Index(fields=["id"], name="post_nameless", condition=Q(conversation__isnull=True)),
        ]
