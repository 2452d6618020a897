"""What conversations and agents have spent: tokens and their cost. From stored sums, or a bounded read.

For a conversation's panel, the list and the agent's page. An unknown price is shown as unknown, never as 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Sum

from conversations.core import micros, model_prices
from conversations.core.database_clock import database_now
from conversations.core.model_prices import CostSum, ModelTokenCount
from conversations.events.log.sql import any_of
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import ModelUsage
from conversations.models.turn import IS_UNKNOWN

TURNS = 5_000  # of an agent, the newest of a day
_COLUMNS = "model,is_demo,input_tokens,cached_tokens,cache_write_tokens,output_tokens,unknown_turns"
_OF_MANY = f"""SELECT conversation_id,{_COLUMNS} FROM conversations_modelusage
WHERE conversation_id{{}} AND turns>0"""
_OF_AGENT = f"""SELECT model,is_demo,SUM(input_tokens),SUM(cached_tokens),SUM(cache_write_tokens),SUM(output_tokens),
SUM(CASE WHEN {IS_UNKNOWN} THEN 1 ELSE 0 END),COUNT(*) FROM
(SELECT model,is_demo,input_tokens,cached_tokens,cache_write_tokens,output_tokens
FROM conversations_turn WHERE agent=%s AND at>=%s ORDER BY at DESC LIMIT %s) AS t GROUP BY model,is_demo"""


class ModelTokens(NamedTuple):
    """What a model has spent: turns, tokens, and their cost as shown."""

    model: str
    is_demo: bool
    turns: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: str


class AgentSpending(NamedTuple):
    """What an agent has spent in a day, the tokens of `unknown_turns` aside; `is_cut`: only its newest `TURNS` turns
    were counted."""

    turns: int
    unknown_turns: int
    input_tokens: int
    output_tokens: int
    cost: CostSum
    is_cut: bool


def of_conversation(conversation: int) -> tuple[list[ModelTokens], CostSum]:
    """Return what each model has spent in a conversation, the one with most turns first, and the total cost."""
    names = ("turns", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "unknown_turns")
    usages = ModelUsage.objects.filter(conversation=conversation, turns__gt=0).values_list("model", "is_demo")
    rows = usages.order_by().annotate(*(Sum(name) for name in names))
    spent = {ModelTokenCount(model, is_demo, *tokens): turns for model, is_demo, turns, *tokens in rows}
    lines = [
        ModelTokens(line.model, line.is_demo, turns, line.input_tokens,
                    line.output_tokens, line.cached_tokens, model_prices.total([line]).words)
        for line, turns in spent.items()
    ]  # fmt: skip
    most = sorted(lines, key=lambda line: (-line.turns, -line.input_tokens - line.output_tokens, line.model))
    return most, model_prices.total(spent)


def costs_of(conversations: Sequence[int]) -> dict[int, CostSum]:
    """Return the costs of these conversations, by row id; conversations without model turns are left out."""
    if not conversations:
        return {}
    test, values = any_of(conversations)
    spent: dict[int, list[ModelTokenCount]] = {}
    for conversation, model, is_demo, *tokens in fetch_rows(_OF_MANY.format(test), values):
        spent.setdefault(conversation, []).append(ModelTokenCount(model, bool(is_demo), *tokens))
    return {key: model_prices.total(lines) for key, lines in spent.items() if not all(line.is_demo for line in lines)}


def of_agent(name: str) -> AgentSpending:
    """Return what an agent has spent in the last 24 hours, in all conversations."""
    fetched = fetch_rows(_OF_AGENT, [name, database_now() - micros.DAY, TURNS])
    rows = [(model, bool(is_demo), *map(int, sums)) for model, is_demo, *sums in fetched]
    cost = model_prices.total(ModelTokenCount(*row[:-1]) for row in rows)
    turns = sum(row[-1] for row in rows)
    is_cut = turns >= TURNS
    return AgentSpending(
        turns, sum(row[6] for row in rows), sum(row[2] for row in rows), sum(row[5] for row in rows),
        cost._replace(is_partial=cost.is_partial or is_cut), is_cut,
    )  # fmt: skip
