"""Auto-approval rules: calls that are approved without a request.

`conversations.runs.approvals.auto_approval_rules` says which calls a rule matches.
"""

from django.db import models
from django.db.models import F, Q


class AutoApprovalRuleQuerySet(models.QuerySet["AutoApprovalRule"]):
    """Queries of pages and the approval gate."""

    def live(self, now: int) -> "AutoApprovalRuleQuerySet":
        """Keep those that may approve a call at `now` (µs UTC, by the database's clock)."""
        current = self.filter(revoked_at=None).exclude(until__lte=now)
        return current.filter(Q(uses=None) | Q(used__lt=F("uses")))


class AutoApprovalRule(models.Model):
    """A rule that a person made: this tool, this agent or any, these arguments, so many times, until then.

    Like a policy it is the operators' setting and not a fold of events; what it approved is in the events (`rule` of
    `approval.decided`). `used` is counted in the transaction that stores an approval.
    """

    id = models.CharField(max_length=64, primary_key=True)
    lookup_key = models.CharField(max_length=410, help_text="the tool's kind and names: `bare:x`")
    tool = models.CharField(max_length=401, help_text="its qualified name, as it is shown")
    schema = models.CharField(max_length=64, default="", help_text="the tool's hash; empty: whatever it is then")
    origin = models.CharField(
        max_length=40,
        default="",
        db_default="",
        help_text="where the tool comes from: function, mcp …; empty: anywhere",
    )
    mcp_server = models.CharField(max_length=200, default="", db_default="", help_text="its MCP server; empty: any")
    team = models.CharField(
        max_length=100, default="", db_default="", help_text="whose agent calls it; empty: any team's"
    )
    agent = models.CharField(max_length=200, default="", help_text="an agent's name; empty: every agent")
    is_exact = models.BooleanField(help_text="the arguments are these; else these are among them")
    arguments = models.TextField(help_text="canonical JSON of an object")
    digest = models.CharField(max_length=64, help_text="its SHA-256")
    uses = models.IntegerField(null=True, help_text="how often it may approve; null: without a limit")
    used = models.IntegerField(default=0)
    until = models.BigIntegerField(null=True, help_text="µs UTC; null: for ever")
    made_by = models.CharField(max_length=160)
    made_at = models.BigIntegerField(help_text="µs UTC")
    approval = models.CharField(max_length=64, default="", help_text="the question that it was made from")
    reason = models.CharField(max_length=2000, default="")
    revoked_by = models.CharField(max_length=160, default="")
    revoked_at = models.BigIntegerField(null=True, help_text="µs UTC")

    objects = AutoApprovalRuleQuerySet.as_manager()

    class Meta:
        db_table = "conversations_alwaysrule"
        indexes = [models.Index(fields=["lookup_key"], name="always_live", condition=Q(revoked_at=None))]
