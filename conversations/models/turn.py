"""What one model turn spent, and what a conversation has spent so far: projections of `model.turn`, of outputs that
report their usage, and of tool steps."""

from django.db import models

from conversations.models.conversation import Conversation

IS_UNKNOWN = "input_tokens=0 AND output_tokens=0"  # SQL: the tokens of a turn are unknown


class Turn(models.Model):
    """A model turn, ours or reported. Its event is at `seq`; the model's name is empty if unknown. A turn of ours whose
    tokens are unknown has none at all, which no known one has."""

    pk = models.CompositePrimaryKey("conversation_id", "seq")
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    seq = models.BigIntegerField()
    at = models.BigIntegerField(help_text="µs UTC, commit time")
    agent = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    is_demo = models.BooleanField(default=False)
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    cached_tokens = models.BigIntegerField(default=0, db_default=0, help_text="of the input, read from a cache")
    cache_write_tokens = models.BigIntegerField(default=0, db_default=0, help_text="of the input, written to a cache")
    run = models.CharField(max_length=64, null=True, help_text="the run of ours that it is of")
    worked_ms = models.BigIntegerField(default=0, db_default=0, help_text="how long its model took; 0 inside a tool")

    class Meta:
        indexes = [
            models.Index(fields=["at"], name="turn_by_time"),  # the numbers page reads a range of time
            models.Index(fields=["agent", "at"], name="turn_by_agent"),  # an agent's page, and its budgets
        ]


class ModelUsage(models.Model):
    """What an agent has spent in a conversation so far, by model: sums that events add to, so that no page has to.

    The row without a model counts the agent's tool calls. `key` is the agent, the model and whether it is the demo's.
    """

    pk = models.CompositePrimaryKey("conversation_id", "key")
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_index=False, db_constraint=False)
    key = models.CharField(max_length=410)
    agent = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    is_demo = models.BooleanField(default=False)
    turns = models.BigIntegerField(default=0)
    unknown_turns = models.BigIntegerField(default=0, help_text="of these, ours whose server did not tell their tokens")
    input_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0, db_default=0)
    output_tokens = models.BigIntegerField(default=0)
    calls = models.BigIntegerField(default=0)
    worked_ms = models.BigIntegerField(default=0, help_text="of models and tools; not of what happened inside a tool")
