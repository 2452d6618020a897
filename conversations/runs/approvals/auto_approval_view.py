"""Present auto-approval rules for the page and the API: what each matches, whether and why it applies, and its uses."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef
from django.urls import reverse
from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.database_clock import database_now
from conversations.core.errors import Invalid
from conversations.core.micros import to_datetime
from conversations.models import Agent, Approval, AutoApprovalRule
from conversations.rendering import json_tree, richtext
from conversations.runs.approvals import auto_approval_rules, request_terms
from conversations.runs.approvals.auto_approval import makers_right
from conversations.runs.approvals.auto_approval_rules import ToolIdentity
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Effect

STATES = ("live", "ended")
LATELY = 5  # approvals of a rule that are shown

Json = dict[str, Any]


class _OfferedTool(NamedTuple):
    agent: str
    identity: ToolIdentity
    effect: Effect


@dataclass(frozen=True, slots=True)
class Use:
    """A request that a rule approved."""

    approval: str
    conversation: str
    title: Markup
    seq: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ShownAutoApproval:
    """A rule. Texts are prepared for display; `idle` is the reason why it approves nothing now, empty if it does."""

    row: AutoApprovalRule
    tool: str
    agent: str
    server: str
    team: str
    arguments: Markup
    is_any: bool
    idle: str
    uses: list[Use]

    @property
    def is_live(self) -> bool:
        """Return whether it can still be revoked."""
        return self.row.revoked_at is None

    @property
    def title(self) -> str:
        """Its title."""
        return f"{self.tool} by {self.agent or 'any agent'}"

    @property
    def maker(self) -> str:
        """Its creator, without the kind."""
        return hidden_characters.spelled_out(self.row.made_by.partition(":")[2] or self.row.made_by)

    @property
    def made_at(self) -> datetime:
        """When it was created."""
        return to_datetime(self.row.made_at)

    @property
    def until(self) -> datetime | None:
        """When it expires."""
        return to_datetime(self.row.until) if self.row.until is not None else None

    @property
    def reason(self) -> str:
        """The reason given for it."""
        return hidden_characters.spelled_out(self.row.reason)


def page(
    *, state: str = "live", rule: str = "", before: str = "", limit: int = 50
) -> tuple[list[ShownAutoApproval], str | None]:
    """Return rules newest first, and the id before which the next page starts. `rule`: only this one. Raises `Invalid`.

    `live` are those that can still approve calls, by their uses, time and revocation.
    """
    if state not in STATES:
        raise Invalid(f"must be one of {', '.join(STATES)}", field="state")
    live = AutoApprovalRule.objects.live(database_now())
    rules = live if state == "live" else AutoApprovalRule.objects.filter(~Exists(live.filter(id=OuterRef("id"))))
    if rule:
        rules = AutoApprovalRule.objects.filter(id=rule[:64])
    if before:
        rules = rules.filter(id__lt=before[:64])
    rows = list(rules.order_by("-id")[: limit + 1])
    return shown(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None


def shown(rows: Sequence[AutoApprovalRule]) -> list[ShownAutoApproval]:
    """Prepare rules for display."""
    now, offered = database_now(), _offered()
    return [
        ShownAutoApproval(
            row=row,
            tool=hidden_characters.spelled_out(row.tool),
            agent=hidden_characters.spelled_out(row.agent),
            server=hidden_characters.spelled_out(row.mcp_server),
            team=hidden_characters.spelled_out(row.team),
            arguments=json_tree.draw(row.arguments),
            is_any=not row.is_exact and row.arguments == "{}",
            idle=_idle(row, now, offered),
            uses=_uses(row),
        )
        for row in rows
    ]


def item(rule: ShownAutoApproval) -> Json:
    """Return a rule for the API."""
    row = rule.row
    return {
        "rule_id": row.id, "tool": row.tool, "lookup_key": row.lookup_key, "schema": row.schema, "agent": row.agent,
        "origin": row.origin, "mcp_server": row.mcp_server, "team": row.team,
        "match": "exact" if row.is_exact else "partial", "arguments": json.loads(row.arguments),
        "uses": row.uses, "used": row.used, "until": rule.until.isoformat() if rule.until else None,
        "made_by": row.made_by, "made_at": rule.made_at.isoformat(), "approval_id": row.approval or None,
        "reason": row.reason, "revoked_by": row.revoked_by or None,
        "revoked_at": to_datetime(row.revoked_at).isoformat() if row.revoked_at else None,
        "idle": rule.idle, "url": f"{reverse('approval-rules')}?rule={row.id}",
    }  # fmt: skip


def _idle(row: AutoApprovalRule, now: int, offered: dict[str, list[_OfferedTool]]) -> str:
    """Return why a rule approves nothing now."""
    if row.revoked_at is not None:
        return f"Revoked by {hidden_characters.spelled_out(row.revoked_by)}"
    if row.uses is not None and row.used >= row.uses:
        return "Used up"
    if row.until is not None and row.until <= now:
        return "Expired"
    if not makers_right(row):
        return f"{hidden_characters.spelled_out(row.made_by)} may no longer decide"
    about = evaluate.matching(evaluate.rows(), row.agent, row.tool)
    tools, own = offered.get(row.lookup_key, []), auto_approval_rules.tool_of(row)
    effects = [tool.effect for tool in tools if row.agent in ("", tool.agent) and own.matches(tool.identity)]
    held = evaluate.effective(evaluate.Declared("ask", evaluate.weakest(effects)), about)
    if held.rule == "deny":
        return "Policy denies these calls"
    if request_terms.of_call(about).no_always:
        return "The policy requires a person to decide on every call"
    if held.effect == "destructive" and not (row.agent and row.is_exact):
        by = "Policy treats these calls as" if held.effect_by is not None else "The team's code declares these calls"
        return f"{by} destructive: a rule requires a single agent and exact arguments"
    if tools and not any(own._replace(team="").matches(tool.identity) for tool in tools):
        return "The tool has changed"
    return ""


def _offered() -> dict[str, list[_OfferedTool]]:
    """Return the tools that are offered now, by lookup key."""
    offered: dict[str, list[_OfferedTool]] = {}
    for agent, team, tools in Agent.objects.values_list("name", "team", "tools"):
        for tool in json.loads(tools):
            key = str(tool.get("lookup_key") or f"bare:{tool.get('name')}")
            identity = auto_approval_rules.identity_of(tool, tool.get("team") or team)
            offered.setdefault(key, []).append(_OfferedTool(agent, identity, evaluate.as_effect(tool.get("effect"))))
    return offered


def _uses(row: AutoApprovalRule) -> list[Use]:
    last: Iterable[Approval] = (
        Approval.objects.filter(rule=row.id).order_by("-id").select_related("conversation")[:LATELY]
    )
    return [
        Use(
            approval.id,
            approval.conversation.key,
            richtext.inline((approval.conversation.title or approval.conversation.key)[:120]),
            approval.asked_seq,
            to_datetime(approval.decided_at or approval.asked_at),
        )
        for approval in last
    ]  # fmt: skip
