"""Which agents are offered a tool, and with which settings besides its schema, from the rows that workers wrote."""

import json
from dataclasses import dataclass, field
from typing import Any

from conversations.core.database_clock import database_now
from conversations.core.json_values import text_of
from conversations.models import Agent

Facts = dict[str, Any]  # a worker's JSON


@dataclass(slots=True)
class ToolOffer:
    """A tool as it is offered to `agents`, with equal settings for all of them."""

    facts: Facts
    agents: list[str] = field(default_factory=list)
    is_served: bool = False

    def text(self, name: str) -> str:
        """Return a setting that is a text; empty if it is not."""
        return text_of(self.facts.get(name)) or ""

    def texts(self, *names: str) -> list[str]:
        """Return a setting that is a list of texts."""
        value: Any = self.facts
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

    @property
    def schema(self) -> str:
        """Return the hash of its schema."""
        return self.text("schema")

    @property
    def is_handoff(self) -> bool:
        """Return whether it hands over to another agent."""
        return self.text("origin") == "handoff"

    @property
    def runs_at_provider(self) -> bool:
        """Return whether its calls run at the model's provider, where our policies do not apply."""
        return self.text("runs_at") == "provider"

    @property
    def asks(self) -> str:
        """Return when a person is asked: always, never, or the name of the function that decides."""
        return self.text("approval") or ("always" if self.facts.get("needs_approval") is True else "never")

    @property
    def timeout_s(self) -> float | None:
        """Return the time limit of a call in seconds; None without one."""
        value = self.facts.get("timeout_s")
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def ends_run(self) -> bool:
        """Return whether a timeout ends the run; otherwise the model is told."""
        return self.facts.get("timeout_ends_run") is True

    @property
    def is_deferred(self) -> bool:
        """Return whether a model has to search for it first."""
        return self.facts.get("is_deferred") is True


def offers_of(team: str, name: str) -> list[ToolOffer]:
    """Return how a tool (by qualified name) is offered to a team's agents: one offer for all with equal settings."""
    now, offers = database_now(), dict[str, ToolOffer]()
    for row in Agent.objects.filter(team=team).order_by("-is_entry", "name"):
        for tool in of_agent(row):
            if tool.get("name") == name:
                offer = offers.setdefault(json.dumps(tool, sort_keys=True), ToolOffer(tool))
                offer.agents.append(row.name)
                offer.is_served |= row.served_until > now
    return list(offers.values())


def of_agent(row: Agent) -> list[Facts]:
    """Return the settings of everything offered to an agent: tools, then handoffs as tools."""
    transfers = [tool | {"origin": "handoff", "public_name": tool.get("name")} for tool in entries(row.transfers)]
    return entries(row.tools) + transfers


def also_called(team: str, name: str) -> list[str]:
    """Return the qualified names of the team's other tools with the same public name."""
    tools = [tool for row in Agent.objects.filter(team=team) for tool in of_agent(row)]
    publics = {_public(tool) for tool in tools if tool.get("name") == name}
    others = {str(tool["name"]) for tool in tools if tool.get("name") and _public(tool) in publics}
    return sorted(others - {name})


def agents_of_other_teams(team: str) -> list[str]:
    """Return the agents of other teams whose names no agent of this team has."""
    own_names = Agent.objects.filter(team=team).values("name")
    return list(Agent.objects.exclude(team=team).exclude(name__in=own_names).values_list("name", flat=True).distinct())


def entries(text: str) -> list[Facts]:
    """Parse a JSON list of objects; other items are dropped."""
    return [entry for entry in read(text, list) if isinstance(entry, dict)]


def read(text: str, kind: type[Any]) -> Any:
    """Parse JSON of a given type; an empty value of that type if it is another."""
    try:
        value = json.loads(text)
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


def texts_of(text: str) -> list[str]:
    """Parse a JSON list of texts; other items are dropped."""
    return [entry for entry in read(text, list) if isinstance(entry, str)]


def _public(tool: Facts) -> str:
    return str(tool.get("public_name") or tool.get("name") or "")
