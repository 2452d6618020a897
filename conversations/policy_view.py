"""The operators' rules as a page shows them: what each does, which others go before it, whether a tool fits it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from conversations.actions.policies import state_of
from conversations.fragments import hidden
from conversations.models import Agent, Policy
from conversations.policy import (
    MOST,
    RULES,
    Declared,
    OnExpiry,
    Row,
    Rows,
    Rule,
    effective,
    matching,
    stored,
    targets,
)  # fmt: skip
from conversations.policy_form import time_of, whom

NAMED = 3  # others that a remark names

DOES: dict[Rule, str] = {
    "allow": "goes as the team’s code says",
    "ask": "waits for a person",
    "deny": "is refused before it begins; the model is told, and the run goes on",
}

ENDS: dict[OnExpiry, str] = {
    "wait": "it keeps waiting",
    "notify": "it keeps waiting, and a role is told",
    "reject": "the call is not made",
}

Codes = dict[tuple[str, str], Declared]  # agent and tool → what the code says


@dataclass(frozen=True, slots=True)
class Shown:
    """A rule on the page. Names are fit to be shown; `state` tells whether it was changed since."""

    row: Row
    agent: str
    tool: str
    does: str
    terms: list[str]
    note: str
    remarks: list[str]
    state: str
    updated_at: datetime


def shown(words: str = "", *, most: int = MOST) -> tuple[int, list[Shown]]:
    """Answer how many rules hold these words in agent, tool or note (empty: all), and the first `most` of them."""
    rows, codes = stored(), codes_of_served()
    times = {(agent, tool): at for agent, tool, at in Policy.objects.values_list("agent", "tool", "updated_at")}
    low = words.casefold()
    found = [row for row in rows.values() if low in f"{row.agent}\0{row.tool}\0{row.note}".casefold()]
    found = [row for row in found if row.target in times]
    return len(found), [_shown(row, rows, codes, times[row.target]) for row in found[:most]]


def codes_of_served() -> Codes:
    """Answer every tool of every agent that workers told of, and what its code says."""
    codes: Codes = {}
    for name, tools in Agent.objects.order_by("name").values_list("name", "tools"):
        for tool in _listed(tools):
            rule: Rule = "ask" if tool.get("needs_approval") is True else "allow"
            declared = Declared(rule)
            effect = tool.get("effect")
            if effect in ("read", "idempotent", "unsafe", "destructive"):
                declared = Declared(rule, effect)
            codes[name, str(tool.get("name", ""))] = declared
    return codes


def remarks(row: Row, rows: Rows, codes: Codes) -> list[str]:
    """Say what one would not see by the rule alone."""
    about = [pair for pair in codes if row.target in set(targets(*pair))]
    if not about:
        return [_about_nothing(row)]
    told = [_before(row, rows), _freed(row, rows)]
    decided = [pair for pair in about if matching(rows, *pair)[0] is row]
    if not decided:
        told.append("It decides nothing now: more specific rules go before it for every tool that is served.")
    elif all(_is_idle(pair, rows, codes[pair], row) for pair in decided):
        told.append("It changes nothing now: without it the same would hold.")
    return [one for one in told if one]


def _shown(row: Row, rows: Rows, codes: Codes, at: datetime) -> Shown:
    does = DOES[row.rule] + (f". It counts as {row.effect} at least" if row.effect else "")
    agent, tool, note = map(hidden.spell, (row.agent, row.tool, row.note))
    told = [hidden.spell(one) for one in remarks(row, rows, codes)]
    return Shown(row, agent, tool, does, terms_of(row), note, told, state_of(row), at)


def terms_of(row: Row) -> list[str]:
    """Say on which terms a question about such a call is asked, as far as the row says it."""
    ends = ENDS.get(row.on_expiry, "") if row.on_expiry else ""
    ends = ends.replace("a role", row.notify) if row.notify else ends
    limit = f"A question may wait {time_of(row.deadline_s)}" if row.deadline_s else ""
    told = [f"{limit}, then {ends}" if limit and ends else limit or (f"When its time is up {ends}" if ends else "")]
    told += ["Four eyes: nobody decides on what they wrote"] if row.four_eyes else []
    told += ["No always rule: a person decides each call"] if row.no_always else []
    return [f"{one}." for one in told if one]


def settings_say() -> str:
    """Say what the settings say of every question."""
    config = settings.CONFIG
    ends = ENDS[config.approval_expiry].replace("a role", config.approval_role)
    limit = f"a question may wait {time_of(config.approval_s)}, then {ends}" if config.approval_s else "no deadline"
    return f"{limit}; {'four eyes' if config.four_eyes else 'who wrote may decide'}"


def _about_nothing(row: Row) -> str:
    if row.tool.startswith("transfer_to_"):
        return "This looks like a handoff. Handoffs are no tools: no rule is about them."
    if row.tool:
        return "No agent that is served has this tool. It may belong to an agent inside a tool, or be misspelt."
    return "No agent of this name with tools is served. It may be an agent inside a tool, or misspelt."


def _before(row: Row, rows: Rows) -> str:
    """Name the more specific rules that say something else of a part of what this one is about."""
    others = [other for other in rows.values() if other.rule != row.rule and _goes_before(other, row)]
    if not others:
        return ""
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"More specific, so they go before it: {_list(others[:NAMED])}{more}."


def _freed(row: Row, rows: Rows) -> str:
    """Name the rule that would be stricter, were this one not there."""
    general = [other for other in rows.values() if _goes_before(row, other)]
    strict = [other for other in general if RULES.index(other.rule) > RULES.index(row.rule)]
    return f"It goes before stricter rules: {_list(strict[:NAMED])}." if strict else ""


def _list(others: Iterable[Row]) -> str:
    return ", ".join(f"{other.rule} {whom(other)}" for other in others)


def _goes_before(one: Row, other: Row) -> bool:
    """Tell whether `one` is more specific than `other` for a call that both are about."""
    call = (one.agent or other.agent, one.tool or other.tool)
    order = list(targets(*call))
    both = one.target in order and other.target in order
    return both and one.target != other.target and order.index(one.target) < order.index(other.target)


def _is_idle(pair: tuple[str, str], rows: Rows, code: Declared, row: Row) -> bool:
    told = matching(rows, *pair)
    others = [other for other in told if other is not row]
    return not terms_of(row) and effective(code, told)[:2] == effective(code, others)[:2]


def _listed(text: str) -> list[dict[str, object]]:
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
