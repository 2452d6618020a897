"""Always rules as the page and the API show them: what each is about, whether it counts and why not, what it did."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse
from markupsafe import Markup

from conversations import policy, terms
from conversations.actions.granting import makers_right
from conversations.errors import Invalid
from conversations.fragments import hidden, jsontree, richtext
from conversations.models import Agent, AlwaysRule, Approval
from conversations.nodes import database_time

STATES = ("live", "ended")
LATELY = 5  # approvals of a rule that are told

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Use:
    """A question that a rule answered."""

    approval: str
    conversation: str
    title: Markup
    seq: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Shown:
    """A rule. Texts are fit to be shown; `idle` says why it approves nothing now, empty when it does."""

    row: AlwaysRule
    tool: str
    agent: str
    arguments: Markup
    is_any: bool
    idle: str
    uses: list[Use]

    @property
    def is_live(self) -> bool:
        """Tell whether it can be revoked still."""
        return self.row.revoked_at is None

    @property
    def title(self) -> str:
        """Name it."""
        return f"{self.tool} of {self.agent or 'every agent'}"

    @property
    def maker(self) -> str:
        """Who made it, without the kind."""
        return hidden.spell(self.row.made_by.partition(":")[2] or self.row.made_by)

    @property
    def made_at(self) -> datetime:
        """When it was made."""
        return moment(self.row.made_at)

    @property
    def until(self) -> datetime | None:
        """Until when it counts."""
        return moment(self.row.until) if self.row.until is not None else None

    @property
    def reason(self) -> str:
        """Why it was made."""
        return hidden.spell(self.row.reason)


def page(*, state: str = "live", rule: str = "", before: str = "", limit: int = 50) -> tuple[list[Shown], str | None]:
    """Answer rules newest first, and the id that older ones come before. `rule`: only this one. Raises `Invalid`.

    `live` are those that can approve something still, as far as uses, time and revocation go.
    """
    if state not in STATES:
        raise Invalid(f"expected one of {', '.join(STATES)}", field="state")
    live = AlwaysRule.objects.live(database_time())
    found = live if state == "live" else AlwaysRule.objects.exclude(id__in=live.values("id"))
    if rule:
        found = AlwaysRule.objects.filter(id=rule[:64])
    if before:
        found = found.filter(id__lt=before[:64])
    rows = list(found.order_by("-id")[: limit + 1])
    return shown(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None


def shown(rows: Sequence[AlwaysRule]) -> list[Shown]:
    """Make them fit to be shown."""
    now, schemas = database_time(), _schemas()
    return [
        Shown(
            row=row,
            tool=hidden.spell(row.tool),
            agent=hidden.spell(row.agent),
            arguments=jsontree.draw(row.arguments),
            is_any=not row.is_exact and row.arguments == "{}",
            idle=_idle(row, now, schemas),
            uses=_uses(row),
        )
        for row in rows
    ]


def item(one: Shown) -> Json:
    """Answer a rule for programs."""
    row = one.row
    return {
        "rule_id": row.id, "tool": row.tool, "lookup_key": row.lookup_key, "schema": row.schema, "agent": row.agent,
        "match": "exact" if row.is_exact else "partial", "arguments": json.loads(row.arguments),
        "uses": row.uses, "used": row.used, "until": one.until.isoformat() if one.until else None,
        "made_by": row.made_by, "made_at": one.made_at.isoformat(), "approval_id": row.approval or None,
        "reason": row.reason, "revoked_by": row.revoked_by or None,
        "revoked_at": moment(row.revoked_at).isoformat() if row.revoked_at else None,
        "idle": one.idle, "url": f"{reverse('approval-rules')}?rule={row.id}",
    }  # fmt: skip


def moment(at: int) -> datetime:
    """Read µs UTC."""
    return datetime.fromtimestamp(at / 1e6, UTC)


def _idle(row: AlwaysRule, now: int, schemas: dict[str, set[str]]) -> str:
    """Say why a rule approves nothing now."""
    if row.revoked_at is not None:
        return f"Revoked by {hidden.spell(row.revoked_by)}"
    if row.uses is not None and row.used >= row.uses:
        return "Used up"
    if row.until is not None and row.until <= now:
        return "Its time is up"
    if not makers_right(row):
        return f"{hidden.spell(row.made_by)} may not decide any more"
    about = policy.matching(policy.rows(), row.agent, row.tool)
    held = policy.effective(policy.Declared("ask", "read"), about)
    if held.rule == "deny":
        return "The policy denies these calls"
    if terms.of_call(about).no_always:
        return "The policy has a person decide each call"
    if held.effect == "destructive" and not (row.agent and row.is_exact):
        return "The calls destroy, by the policy: only one agent and exact arguments count"
    offered = schemas.get(row.lookup_key, set())
    if row.schema and offered and row.schema not in offered:
        return "The tool is another one now"
    return ""


def _schemas() -> dict[str, set[str]]:
    """Answer the hashes under which each tool is offered now, by its lookup key."""
    found: dict[str, set[str]] = {}
    for tools in Agent.objects.values_list("tools", flat=True):
        for tool in json.loads(tools):
            key = str(tool.get("lookup_key") or f"bare:{tool.get('name')}")
            found.setdefault(key, set()).add(str(tool.get("schema") or ""))
    return found


def _uses(row: AlwaysRule) -> list[Use]:
    last: Iterable[Approval] = (
        Approval.objects.filter(rule=row.id).order_by("-id").select_related("conversation")[:LATELY]
    )
    return [
        Use(one.id, one.conversation.key, richtext.inline((one.conversation.title or one.conversation.key)[:120]),
            one.asked_seq, moment(one.decided_at or one.asked_at))
        for one in last
    ]  # fmt: skip
