"""The operators' policy: rules for tools, one row each.

`conversations.runs.policy.evaluate` combines them.
"""

from django.db import models


class Policy(models.Model):
    """A rule for one agent or all, and one tool or all. It tightens what the team's code says, never loosens it."""

    agent = models.CharField(max_length=200, default="", help_text="an agent's name; empty: every agent")
    tool = models.CharField(max_length=401, default="", help_text="a tool's qualified name; empty: every tool")
    rule = models.CharField(max_length=5, help_text="allow, ask or deny")
    effect = models.CharField(
        max_length=12, default="", help_text="read, idempotent, unsafe or destructive; empty: what the code says"
    )
    note = models.CharField(max_length=500, default="")
    deadline_s = models.IntegerField(null=True, help_text="seconds a question may wait; null: as the settings say")
    on_expiry = models.CharField(
        max_length=6, default="", help_text="wait, reject or notify; empty: as the settings say"
    )
    notify = models.CharField(max_length=10, default="", help_text="the role that is told; empty: as the settings say")
    four_eyes = models.BooleanField(default=False, help_text="nobody decides on a run whose input they wrote or sent")
    no_always = models.BooleanField(
        default=False, help_text="no auto-approval rule approves: a person decides each call"
    )
    updated_by = models.CharField(max_length=160)
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "tool"], name="policy_once")]
