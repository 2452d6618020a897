"""Evaluate the operators' policy for a call. Used by the agents' gate before every call, and by pages.

The rule of the most specific row applies:

1. this agent and this tool
2. any agent, this tool
3. this agent, any tool
4. any agent, any tool

The result is the stricter of that rule and the team's code: deny > ask > allow. The effect is determined in the same
way, as the stronger of the most specific row's effect and the code's: destructive > unsafe > idempotent > read. A row
therefore never loosens the code; among rows, a specific `allow` exempts one agent from a general `deny`. Rules apply to
tools, not to handoffs: the team's code decides which agent may hand over to which. The terms of approval requests
(deadline, what happens then, four eyes) are computed in `conversations.runs.approvals.request_terms`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Literal, NamedTuple

from django.db.models import Q

from conversations.core.db_threads import RunInThread
from conversations.core.ttl_cache import TtlCache
from conversations.models import Policy

Rule = Literal["allow", "ask", "deny"]
Effect = Literal["read", "idempotent", "unsafe", "destructive"]
OnExpiry = Literal["wait", "notify", "reject"]

RULES: tuple[Rule, ...] = ("allow", "ask", "deny")  # the later the stricter
EFFECTS: tuple[Effect, ...] = ("read", "idempotent", "unsafe", "destructive")
ENDS: tuple[OnExpiry, ...] = ("wait", "notify", "reject")  # the later the stricter
MAX_RULES = 1_000  # rows; the actions take no more

Target = tuple[str, str]  # agent and tool, either may be empty


class PolicyRule(NamedTuple):
    """A rule as stored."""

    agent: str
    tool: str
    rule: Rule
    effect: Effect | Literal[""] = ""
    note: str = ""
    updated_by: str = ""
    deadline_s: int | None = None
    on_expiry: OnExpiry | Literal[""] = ""
    notify: str = ""
    four_eyes: bool = False
    no_always: bool = False

    @property
    def target(self) -> Target:
        """The agent and tool that it applies to."""
        return self.agent, self.tool

    def as_dict(self) -> dict[str, object]:
        """Return its effect on matching calls, without fields that it leaves open."""
        beside = ("agent", "tool", "updated_by")
        return {name: value for name, value in self._asdict().items() if value and name not in beside}


class Declared(NamedTuple):
    """What the team's code declares about a call."""

    rule: Rule = "allow"
    effect: Effect = "unsafe"


UNDECLARED = Declared()


class Effective(NamedTuple):
    """The result for a call. `by` and `effect_by` are the rows that tightened it; None if the code's declaration
    applies."""

    rule: Rule
    effect: Effect
    by: PolicyRule | None = None
    effect_by: PolicyRule | None = None


Rows = Mapping[Target, PolicyRule]


def as_effect(value: object) -> Effect:
    """Return an effect as it was declared or recorded; `unsafe` for anything else."""
    return next((effect for effect in EFFECTS if effect == value), "unsafe")


def weakest(effects: Iterable[Effect]) -> Effect:
    """Return the weakest of some effects, `read` if there are none."""
    return min(effects, key=_strength, default="read")


def targets(agent: str, tool: str) -> Iterator[Target]:
    """Return the targets by which rows can match a call, the most specific first, for use in memory and in SQL."""
    yield from dict.fromkeys(((agent, tool), ("", tool), (agent, ""), ("", "")))


def matching(rows: Rows, agent: str, tool: str) -> list[PolicyRule]:
    """Return the rows that match a call, the most specific first."""
    return [rows[target] for target in targets(agent, tool) if target in rows]


def effective(declared: Declared, rows: Iterable[PolicyRule]) -> Effective:
    """Tighten the code's declaration by `rows`, which match this call, the most specific first."""
    matched = list(rows)
    rule, effect = declared
    first = next(iter(matched), None)
    by = first if first is not None and RULES.index(first.rule) > RULES.index(rule) else None
    second = next((row for row in matched if row.effect), None)
    effect_by = second if second is not None and _strength(second.effect) > _strength(effect) else None
    return Effective(
        by.rule if by else rule, (effect_by.effect or effect) if effect_by else effect, by=by, effect_by=effect_by
    )


def for_tool(agent: str, tool: str, declared: Declared = UNDECLARED) -> Effective:
    """Return what currently applies to a tool of an agent. At most one query per half second. Sync."""
    return effective(declared, matching(rows(), agent, tool))


def stored() -> dict[Target, PolicyRule]:
    """Read all rows, by target. Sync."""
    read = Policy.objects.order_by("agent", "tool").values_list(*PolicyRule._fields)[:MAX_RULES]
    return {(row[0], row[1]): PolicyRule(*row) for row in read}


def about(agent: str, tool: str) -> list[PolicyRule]:
    """Read the rows that match a call without the cache, the most specific first, for use in a transaction. Sync."""
    conditions = reduce(or_, (Q(agent=named, tool=of) for named, of in targets(agent, tool)))
    read = Policy.objects.filter(conditions).values_list(*PolicyRule._fields)
    return matching({(row[0], row[1]): PolicyRule(*row) for row in read}, agent, tool)


def rows() -> Rows:
    """Return the rows, at most half a second old. Sync."""
    return _cache.answer()


async def rows_in(do: RunInThread) -> Rows:
    """Return the rows, at most half a second old; `do` runs the query. For event loops."""
    return await _cache.answer_in(do)


def latest() -> Rows:
    """Return the rows read last, without a query, however old. Only for display."""
    return _cache.latest


def forget() -> None:
    """Discard the cached rows because they have changed. Called after the commit."""
    _cache.forget()


_cache: TtlCache[Rows] = TtlCache(lambda: stored(), {})


def _strength(effect: str) -> int:
    return EFFECTS.index(effect) if effect in EFFECTS else -1
