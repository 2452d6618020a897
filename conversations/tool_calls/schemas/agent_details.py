"""One agent as its worker reported it, with how its runs ended. For the agent page."""

from dataclasses import dataclass
from typing import Any

from conversations.models import Agent, Run
from conversations.tool_calls import agent_directory
from conversations.tool_calls.schemas import tool_offers

SHOWN = 20


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """The type of an agent's output; `schema` is None for plain text."""

    type: str
    is_wrapped: bool
    is_strict: bool
    schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AgentDetails:
    """An agent: its row and figures, output type, tools, who hands over to it, and its newest runs."""

    served: agent_directory.AgentStatus
    output: AgentOutput
    tools: list[tool_offers.ToolOffer]
    transfers: list[tool_offers.ToolOffer]
    given_by: list[str]
    problems: list[str]
    runs: list[Run]


def agent_details(team: str, name: str) -> AgentDetails | None:
    """Return an agent of a team; None if no worker ever reported it."""
    row = Agent.objects.filter(team=team, name=name).first()
    if row is None:
        return None
    others = Agent.objects.filter(team=team).order_by("-is_entry", "name").values_list("name", "handoffs")
    offers = [tool_offers.ToolOffer(tool, [name]) for tool in tool_offers.of_agent(row)]
    return AgentDetails(
        served=agent_directory.agent_status(row),
        output=_output(row.output),
        tools=[entry for entry in offers if not entry.is_handoff],
        transfers=[entry for entry in offers if entry.is_handoff],
        given_by=[other for other, handoffs in others if name in tool_offers.read(handoffs, list)],
        problems=tool_offers.texts_of(row.problems),
        runs=list(Run.objects.filter(agent=name).order_by("-id").select_related("conversation")[:SHOWN]),
    )


def _output(text: str) -> AgentOutput:
    output: dict[str, Any] = tool_offers.read(text, dict)
    schema = output.get("schema")
    return AgentOutput(
        type=str(output.get("type") or "str"),
        is_wrapped=output.get("is_wrapped") is True,
        is_strict=output.get("is_strict") is True,
        schema=schema if isinstance(schema, dict) else None,
    )
