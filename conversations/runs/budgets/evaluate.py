"""Determine which budget a run has reached. Called by workers between the steps of a run; without any budgets, at most
one query per half second.

| scope | what counts |
|---|---|
| run | what the run has spent, over all its attempts |
| conversation | what its agents, or the named agent, have spent in it |
| agent | what an agent has spent within 24 hours, in any conversation, in runs of ours |

Tokens are input and output tokens; cost includes only models with a known price (`model_prices`); calls are tool
calls once they begin, in a conversation also those that were rejected or blocked; minutes are the time that models and
tools took, without waiting. What programs elsewhere report counts for a conversation alone, as whoever may write to it
may spend its budget. An amount that a person added counts where and when it was added.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet, Sum

from conversations.core import micros, model_prices
from conversations.core.database_clock import database_now
from conversations.core.db_threads import RunInThread
from conversations.core.model_prices import ModelTokenCount
from conversations.core.ttl_cache import TtlCache
from conversations.events import payload
from conversations.events.log.bounded_reads import FETCHED
from conversations.models import BudgetLimit, BudgetRaise, Event, ModelUsage, Run, ToolCall, Turn
from conversations.models.run import EXTERNAL
from conversations.models.tool_call import NOT_BEGUN, STOPPED
from conversations.runs.claims import Claim

SCOPES = {"run": "run", "conversation": "conversation", "agent": "agent in 24 hours"}
MEASURES = {"tokens": "tokens", "cost": "US dollars", "calls": "tool calls", "minutes": "minutes of work"}
ORIGIN = "budget"  # of the question, where a call has the kind of its tool
MAX_BUDGETS = 200  # budgets; the actions take no more


class BudgetRule(NamedTuple):
    """A budget as stored."""

    id: str
    scope: str
    agent: str
    measure: str
    amount: Decimal

    def shown(self, value: Decimal) -> str:
        """Format an amount in its measure."""
        if self.measure == "cost":
            return model_prices.shown(value)
        return f"{value:,.1f}".removesuffix(".0") if self.measure == "minutes" else f"{int(value):,}"

    def counted(self, value: Decimal) -> str:
        """Format an amount with its unit: "$1.50", "1 tool call", "20,000 tokens"."""
        unit = "" if self.measure == "cost" else f" {MEASURES[self.measure]}"
        return self.shown(value) + (unit.replace("s", "", 1) if value == 1 else unit)

    def more(self) -> str:
        """Format what an approval adds: "$1.50 more", "1 more tool call"."""
        number, _, unit = self.counted(self.amount).partition(" ")
        return f"{number} more {unit}".rstrip()


class ReachedBudget(NamedTuple):
    """A budget that is spent: the amount spent, and the limit."""

    rule: BudgetRule
    place: str
    used: Decimal
    allowed: Decimal

    @property
    def words(self) -> str:
        """The text of its approval request."""
        rule = self.rule
        spent = f"{rule.shown(self.used)} of {rule.counted(self.allowed)} per {SCOPES[rule.scope]}"
        return f"Budget reached: {spent}. Continue with {rule.more()}?"


def stored() -> list[BudgetRule]:
    """Read all budgets. Sync."""
    rows = BudgetLimit.objects.order_by("scope", "measure", "agent").values_list(*BudgetRule._fields)
    return [BudgetRule(*row) for row in rows[:MAX_BUDGETS]]


def forget() -> None:
    """Discard the cached budgets because they have changed. Called after the commit."""
    _cache.forget()


async def are_none(do: RunInThread) -> bool:
    """Return whether there are no budgets, as of at most half a second ago; `do` runs the query. For event loops."""
    return not await _cache.answer_in(do)


def reached(claimed: Claim, agent: str) -> ReachedBudget | None:
    """Return the first budget that a run with the active agent `agent` has reached. Sync."""
    for rule in _cache.answer():
        place = {"run": claimed.run, "conversation": claimed.conversation, "agent": agent}[rule.scope]
        if rule.agent not in ("", claimed.agent if rule.scope == "run" else agent):
            continue
        used = _used(rule, claimed, agent)
        if used >= rule.amount and used >= (allowed := rule.amount + _given_on_top(rule, place)):
            return ReachedBudget(rule, place, used, allowed)
    return None


_cache: TtlCache[Sequence[BudgetRule]] = TtlCache(lambda: stored(), [])


def _given_on_top(rule: BudgetRule, place: str) -> Decimal:
    given = BudgetRaise.objects.filter(budget=rule.id, place=place)
    if rule.scope == "agent":
        given = given.filter(at__gte=database_now() - micros.DAY)
    return given.aggregate(total=Sum("amount"))["total"] or Decimal(0)


def _used(rule: BudgetRule, claimed: Claim, agent: str) -> Decimal:
    if rule.scope == "conversation":
        return _in_conversation(rule, claimed.conversation)
    turns: Any
    if rule.scope == "run":
        run = Run.objects.only("conversation_id", "queued_seq").get(id=claimed.run)
        turns = Turn.objects.filter(conversation=run.conversation_id, seq__gt=run.queued_seq, run=claimed.run)
        calls = ToolCall.objects.filter(run=claimed.run)
    else:
        since = database_now() - micros.DAY
        turns = Turn.objects.filter(agent=agent, at__gte=since, run__isnull=False)  # else it is a claim (law I)
        calls = ToolCall.objects.filter(agent=agent, started_at__gte=since, run__isnull=False)
        calls = calls.exclude(run__in=Run.objects.filter(agent=agent, kind=EXTERNAL).values("id"))
    calls = calls.exclude(origin=ORIGIN)
    if rule.measure == "calls":
        return Decimal(calls.exclude(Q(status__in=STOPPED) | NOT_BEGUN).count())
    if rule.measure == "minutes":
        worked = turns.aggregate(ms=Sum("worked_ms"))["ms"] or 0
        if rule.scope == "run":
            return _minutes(worked + _outer_ms(run.conversation_id, calls))
        return _minutes(worked + (calls.aggregate(ms=Sum("duration_ms"))["ms"] or 0))
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
    rows = turns.order_by().values_list("model", "is_demo").annotate(*(Sum(name) for name in names))
    return _tokens_or_cost(rule, [ModelTokenCount(*row) for row in rows])


def _outer_ms(conversation: int, calls: QuerySet[ToolCall]) -> float:
    """Return how long the calls of a run took, without those inside other calls, whose time contains theirs."""
    durations = dict(calls.filter(duration_ms__gt=0).values_list("called_seq", "duration_ms"))
    if len(durations) > 1:
        events = Event.objects.filter(conversation=conversation, seq__in=durations).values_list("seq", "body")
        for seq, body in events.iterator(FETCHED):
            if payload.decoded(body).get("parent_call"):
                del durations[seq]
    return sum(ms or 0 for ms in durations.values())


def _in_conversation(rule: BudgetRule, conversation: str) -> Decimal:
    rows = ModelUsage.objects.filter(conversation__key=conversation)
    rows = rows.filter(agent=rule.agent) if rule.agent else rows
    if rule.measure == "calls":
        calls = ToolCall.objects.filter(NOT_BEGUN, conversation__key=conversation, finished_seq=None)
        calls = calls.exclude(origin=ORIGIN)
        calls = calls.filter(agent=rule.agent) if rule.agent else calls
        open_calls = sum(calls.filter(call_id__isnull=has_none).count() for has_none in (False, True))  # an index each
        return Decimal((rows.aggregate(total=Sum("calls"))["total"] or 0) - open_calls)
    if rule.measure == "minutes":
        return _minutes(rows.aggregate(ms=Sum("worked_ms"))["ms"] or 0)
    names = ("model", "is_demo", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
    return _tokens_or_cost(rule, [ModelTokenCount(*row) for row in rows.filter(turns__gt=0).values_list(*names)])


def _tokens_or_cost(rule: BudgetRule, spent: Sequence[ModelTokenCount]) -> Decimal:
    if rule.measure == "cost":
        return model_prices.total(spent).dollars or Decimal(0)
    return Decimal(sum(line.input_tokens + line.output_tokens for line in spent))


def _minutes(ms: float) -> Decimal:
    return Decimal(round(ms)) / 60_000
