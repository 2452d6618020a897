"""The operators' policy: rules about tools, one row a rule. `conversations.policy` says what they come to."""

from django.db import models


class Policy(models.Model):
    """A rule for one agent or all, about one tool or all. It tightens what the team's code says, never loosens it."""

    agent = models.CharField(max_length=200, default="", help_text="an agent's name; empty: every agent")
    tool = models.CharField(max_length=401, default="", help_text="a tool's qualified name; empty: every tool")
    rule = models.CharField(max_length=5, help_text="allow, ask or deny")
    effect = models.CharField(
        max_length=12, default="", help_text="read, idempotent, unsafe or destructive; empty: what the code says"
    )
    note = models.CharField(max_length=500, default="")
    updated_by = models.CharField(max_length=160)
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "tool"], name="policy_once")]
