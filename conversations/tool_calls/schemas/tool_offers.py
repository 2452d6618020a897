"""Who is offered a tool, and what is told of it there beside its schema, from the rows that workers wrote."""

import json
from dataclasses import dataclass, field
from typing import Any

from conversations.core.json_values import text_of
from conversations.core.node_heartbeat import database_now
from conversations.models import Agent

Facts = dict[str, Any]  # a worker's JSON


@dataclass(slots=True)
class ToolOffer:
    """A tool as agents of a team are offered it, alike for all of `agents`."""

    facts: Facts
    agents: list[str] = field(default_factory=list)
    is_served: bool = False

    def text(self, name: str) -> str:
        """Return a fact that is a text, else nothing."""
        return text_of(self.facts.get(name)) or ""

    def texts(self, *names: str) -> list[str]:
        """Return a fact that is a list of texts."""
        value: Any = self.facts
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

    @property
    def schema(self) -> str:
        """The hash of its schema."""
        return self.text("schema")

    @property
    def is_handoff(self) -> bool:
        """Whether it hands over to another agent."""
        return self.text("origin") == "handoff"

    @property
    def is_elsewhere(self) -> bool:
        """Whether its calls run at the model's provider: no rule of ours reaches them."""
        return self.text("runs_at") == "provider"

    @property
    def asks(self) -> str:
        """When a person is asked: always, never, or the name of the function that decides."""
        return self.text("approval") or ("always" if self.facts.get("needs_approval") is True else "never")

    @property
    def timeout_s(self) -> float | None:
        """Seconds that a call may take."""
        value = self.facts.get("timeout_s")
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def ends_run(self) -> bool:
        """Whether a call that takes longer ends its run; else the model is told."""
        return self.facts.get("timeout_ends_run") is True

    @property
    def is_deferred(self) -> bool:
        """Whether a model has to search for it first."""
        return self.facts.get("is_deferred") is True


def offers_of(team: str, name: str) -> list[ToolOffer]:
    """Return how a team's agents are offered a tool (qualified name): one answer for all to whom it is alike."""
    now, offers = database_now(), dict[str, ToolOffer]()
    for row in Agent.objects.filter(team=team).order_by("-is_entry", "name"):
        for tool in of_agent(row):
            if tool.get("name") == name:
                offer = offers.setdefault(json.dumps(tool, sort_keys=True), ToolOffer(tool))
                offer.agents.append(row.name)
                offer.is_served |= row.served_until > now
    return list(offers.values())


def of_agent(row: Agent) -> list[Facts]:
    """Return the facts of everything that an agent is offered: tools, then handoffs as tools."""
    transfers = [tool | {"origin": "handoff", "public_name": tool.get("name")} for tool in entries(row.transfers)]
    return entries(row.tools) + transfers


def also_called(team: str, name: str) -> list[str]:
    """Return the qualified names of other tools of the team with the same public name: two things to keep apart."""
    tools = [tool for row in Agent.objects.filter(team=team) for tool in of_agent(row)]
    publics = {_public(tool) for tool in tools if tool.get("name") == name}
    others = {str(tool["name"]) for tool in tools if tool.get("name") and _public(tool) in publics}
    return sorted(others - {name})


def elsewhere(team: str) -> list[str]:
    """Return the agents of other teams that no agent of this one is called like."""
    own_names = Agent.objects.filter(team=team).values("name")
    return list(Agent.objects.exclude(team=team).exclude(name__in=own_names).values_list("name", flat=True).distinct())


def entries(text: str) -> list[Facts]:
    """Read a list of objects; anything else in it is left out."""
    return [entry for entry in read(text, list) if isinstance(entry, dict)]


def read(text: str, kind: type[Any]) -> Any:
    """Read JSON of a kind; an empty one where it is another."""
    try:
        value = json.loads(text)
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _public(tool: Facts) -> str:
    return str(tool.get("public_name") or tool.get("name") or "")
