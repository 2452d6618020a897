"""Present the operators' rules for the page: what each does, which others take precedence, and whether a tool matches
it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from conversations.core import hidden_characters
from conversations.models import Agent, Policy
from conversations.runs.policy.edit_policy import state_of
from conversations.runs.policy.evaluate import (  # fmt: skip
    MAX_RULES,
    RULES,
    Declared,
    OnExpiry,
    PolicyRule,
    Rows,
    Rule,
    as_effect,
    effective,
    matching,
    stored,
    targets,
)
from conversations.runs.policy.file_format import describe_target, time_of
from conversations.tool_calls.schemas.tool_offers import entries

NAMED = 3  # others that a remark names

DOES: dict[Rule, str] = {
    "allow": "follows the team’s code",
    "ask": "needs approval",
    "deny": "is denied before it runs; the model is informed and the run continues",
}

ENDS: dict[OnExpiry, str] = {
    "wait": "it keeps waiting",
    "notify": "it keeps waiting and a role is notified",
    "reject": "the call is rejected",
}

Codes = dict[tuple[str, str], Declared]  # agent and tool → what the code says


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """A rule on the page. Names are prepared for display; `state` shows whether it has changed since."""

    row: PolicyRule
    agent: str
    tool: str
    does: str
    terms: list[str]
    note: str
    remarks: list[str]
    state: str
    updated_at: datetime


def shown(query: str = "", *, most: int = MAX_RULES) -> tuple[int, list[ShownPolicy]]:
    """Return how many rules contain this text in agent, tool or note (empty: all), and the first `most` of them."""
    rows, codes = stored(), codes_of_served()
    times = {(agent, tool): at for agent, tool, at in Policy.objects.values_list("agent", "tool", "updated_at")}
    low = query.casefold()
    matches = [row for row in rows.values() if low in f"{row.agent}\0{row.tool}\0{row.note}".casefold()]
    matches = [row for row in matches if row.target in times]
    return len(matches), [_shown(row, rows, codes, times[row.target]) for row in matches[:most]]


def codes_of_served() -> Codes:
    """Return every tool of every agent that workers reported, and what its code declares."""
    codes: Codes = {}
    for name, tools in Agent.objects.order_by("name").values_list("name", "tools"):
        for tool in entries(tools):
            rule: Rule = "ask" if tool.get("needs_approval") is True else "allow"
            codes[name, str(tool.get("name", ""))] = Declared(rule, as_effect(tool.get("effect")))
    return codes


def remarks(row: PolicyRule, rows: Rows, codes: Codes) -> list[str]:
    """Return remarks that are not obvious from the rule alone."""
    about = [pair for pair in codes if row.target in set(targets(*pair))]
    if not about:
        return [_about_nothing(row)]
    lines = [_before(row, rows), _freed(row, rows)]
    decided = [pair for pair in about if matching(rows, *pair)[0] is row]
    if not decided:
        lines.append("Currently unused: more specific rules apply to every available tool.")
    elif all(_is_idle(pair, rows, codes[pair], row) for pair in decided):
        lines.append("Currently redundant: the result would be the same without it.")
    return [line for line in lines if line]


def _shown(row: PolicyRule, rows: Rows, codes: Codes, at: datetime) -> ShownPolicy:
    does = DOES[row.rule] + (f". Treated as at least {row.effect}" if row.effect else "")
    agent, tool, note = map(hidden_characters.spelled_out, (row.agent, row.tool, row.note))
    lines = [hidden_characters.spelled_out(remark) for remark in remarks(row, rows, codes)]
    return ShownPolicy(row, agent, tool, does, terms_of(row), note, lines, state_of(row), at)


def terms_of(row: PolicyRule) -> list[str]:
    """Describe the terms of an approval request for such a call, as far as the row sets them."""
    ends = ENDS.get(row.on_expiry, "") if row.on_expiry else ""
    ends = ends.replace("a role", row.notify) if row.notify else ends
    limit = f"Deadline {time_of(row.deadline_s)}" if row.deadline_s else ""
    lines = [f"{limit}, then {ends}" if limit and ends else limit or (f"After the deadline {ends}" if ends else "")]
    lines += ["Four eyes: requesters cannot approve their own"] if row.four_eyes else []
    lines += ["No auto-approval: a person decides on every call"] if row.no_always else []
    return [f"{line}." for line in lines if line]


def settings_say() -> str:
    """Describe the settings that apply to every approval request."""
    config = settings.CONFIG
    ends = ENDS[config.approval_expiry].replace("a role", config.approval_role)
    limit = f"deadline {time_of(config.approval_s)}, then {ends}" if config.approval_s else "no deadline"
    return f"{limit}; {'four eyes' if config.four_eyes else 'requesters may approve their own'}"


def _about_nothing(row: PolicyRule) -> str:
    if row.tool.startswith("transfer_to_"):
        return "This looks like a handoff. Rules do not apply to handoffs, only to tools."
    if row.tool:
        return "No available agent has this tool. It may belong to an agent inside a tool, or be misspelled."
    return "No available agent with tools has this name. It may be an agent inside a tool, or be misspelled."


def _before(row: PolicyRule, rows: Rows) -> str:
    """Name the more specific rules that differ for some of the calls that this rule matches."""
    others = [other for other in rows.values() if other.rule != row.rule and _goes_before(other, row)]
    if not others:
        return ""
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"Overridden by more specific rules: {_list(others[:NAMED])}{more}."


def _freed(row: PolicyRule, rows: Rows) -> str:
    """Name the rule that would be stricter if this one did not exist."""
    general = [other for other in rows.values() if _goes_before(row, other)]
    strict = [other for other in general if RULES.index(other.rule) > RULES.index(row.rule)]
    return f"Overrides stricter rules: {_list(strict[:NAMED])}." if strict else ""


def _list(others: Iterable[PolicyRule]) -> str:
    return ", ".join(f"{other.rule} {describe_target(other)}" for other in others)


def _goes_before(rule: PolicyRule, other: PolicyRule) -> bool:
    """Return whether `rule` is more specific than `other` for a call that both match."""
    call = (rule.agent or other.agent, rule.tool or other.tool)
    order = list(targets(*call))
    both = rule.target in order and other.target in order
    return both and rule.target != other.target and order.index(rule.target) < order.index(other.target)


def _is_idle(pair: tuple[str, str], rows: Rows, code: Declared, row: PolicyRule) -> bool:
    matched = matching(rows, *pair)
    others = [other for other in matched if other is not row]
    return not terms_of(row) and effective(code, matched)[:2] == effective(code, others)[:2]
