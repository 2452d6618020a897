"""One agent as its worker told of it, with what its runs came to. For the agent page."""

from dataclasses import dataclass
from typing import Any

from conversations import served
from conversations.models import Agent, Run
from conversations.tools import offers

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Output:
    """What an agent answers with; `schema` is None for plain text."""

    type: str
    is_wrapped: bool
    is_strict: bool
    schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Described:
    """An agent: the row and its figures, its output, what it is offered, who hands over to it, its newest runs."""

    served: served.Served
    output: Output
    tools: list[offers.Offer]
    transfers: list[offers.Offer]
    given_by: list[str]
    problems: list[str]
    runs: list[Run]


def described(team: str, name: str) -> Described | None:
    """Answer an agent of a team; None when no worker ever told of it."""
    row = Agent.objects.filter(team=team, name=name).first()
    if row is None:
        return None
    others = Agent.objects.filter(team=team).order_by("-is_entry", "name").values_list("name", "handoffs")
    told = [offers.Offer(facts, [name]) for facts in offers.of_agent(row)]
    return Described(
        served=served.one(row),
        output=_output(row.output),
        tools=[one for one in told if not one.is_handoff],
        transfers=[one for one in told if one.is_handoff],
        given_by=[other for other, handoffs in others if name in offers.read(handoffs, list)],
        problems=[one for one in offers.read(row.problems, list) if isinstance(one, str)],
        runs=list(Run.objects.filter(agent=name).order_by("-id").select_related("conversation")[:SHOWN]),
    )


def _output(text: str) -> Output:
    told: dict[str, Any] = offers.read(text, dict)
    schema = told.get("schema")
    return Output(
        type=str(told.get("type") or "str"),
        is_wrapped=told.get("is_wrapped") is True,
        is_strict=told.get("is_strict") is True,
        schema=schema if isinstance(schema, dict) else None,
    )
