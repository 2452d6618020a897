"""What one answer of a model spent: a projection of `model.turn`, and of outputs that tell their usage."""

from django.db import models

from conversations.models.conversation import Conversation


class Turn(models.Model):
    """A turn, ours or observed. Its event is at `seq`; the model's name is empty where nobody told it."""

    pk = models.CompositePrimaryKey("conversation_id", "seq")
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    seq = models.BigIntegerField()
    at = models.BigIntegerField(help_text="µs UTC, commit time")
    agent = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    is_demo = models.BooleanField(default=False)
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="turn_by_time")]  # the numbers page reads a range of time
