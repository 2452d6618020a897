"""One request of the Open Responses API with its answer, and the one it follows: the chain is in these rows (§5)."""

from django.db import models
from django.db.models import Q

from conversations.models.conversation import Conversation


class Response(models.Model):
    """A response. A fold of our own events: `run.queued` creates it, `response.completed` ends it (law I).

    The request is in the event at `in_seq`, the answer in the one at `out_seq`.
    """

    id = models.CharField(max_length=64, primary_key=True)
    conversation = models.ForeignKey(
        Conversation, models.CASCADE, db_index=False, db_constraint=False, related_name="responses"
    )
    previous = models.CharField(max_length=64, null=True, help_text="the response it goes on from")
    run = models.CharField(max_length=64)
    in_seq = models.BigIntegerField()
    out_seq = models.BigIntegerField(null=True)
    status = models.CharField(max_length=12, default="", help_text="of response.completed; empty until then")
    store = models.BooleanField(
        default=True, help_text="False: continuable on its own websocket only, while it is open"
    )
    socket = models.CharField(max_length=64, default="", help_text="of the websocket that asked; empty for HTTP")

    class Meta:
        indexes = [
            models.Index(fields=["previous"], name="response_by_previous", condition=Q(previous__isnull=False)),
            models.Index(fields=["conversation", "in_seq"], name="response_by_conversation"),
        ]
