"""Who is offered a tool, and what is told of it there beside its schema, from the rows that workers wrote."""

import json
from dataclasses import dataclass, field
from typing import Any

from conversations.models import Agent
from conversations.nodes import database_time

Facts = dict[str, Any]  # a worker's JSON


@dataclass(slots=True)
class Offer:
    """A tool as agents of a team are offered it, alike for all of `agents`."""

    facts: Facts
    agents: list[str] = field(default_factory=list)
    is_served: bool = False

    def text(self, name: str) -> str:
        """Answer a fact that is a text, else nothing."""
        value = self.facts.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, *names: str) -> list[str]:
        """Answer a fact that is a list of texts."""
        value: Any = self.facts
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

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


def offers_of(team: str, name: str) -> list[Offer]:
    """Answer how a team's agents are offered a tool (qualified name): one answer for all to whom it is alike."""
    now, made = database_time(), dict[str, Offer]()
    for row in Agent.objects.filter(team=team).order_by("-is_entry", "name"):
        for facts in of_agent(row):
            if facts.get("name") == name:
                offer = made.setdefault(json.dumps(facts, sort_keys=True), Offer(facts))
                offer.agents.append(row.name)
                offer.is_served |= row.served_until > now
    return list(made.values())


def of_agent(row: Agent) -> list[Facts]:
    """Answer the facts of everything that an agent is offered: tools, then handoffs as tools."""
    transfers = [facts | {"origin": "handoff", "public_name": facts.get("name")} for facts in entries(row.transfers)]
    return entries(row.tools) + transfers


def also_called(team: str, name: str) -> list[str]:
    """Answer the qualified names of other tools of the team with the same public name: two things to keep apart."""
    found = [facts for row in Agent.objects.filter(team=team) for facts in of_agent(row)]
    publics = {_public(facts) for facts in found if facts.get("name") == name}
    others = {str(facts["name"]) for facts in found if facts.get("name") and _public(facts) in publics}
    return sorted(others - {name})


def elsewhere(team: str) -> list[str]:
    """Answer the agents of other teams that no agent of this one is called like."""
    ours = Agent.objects.filter(team=team).values("name")
    return list(Agent.objects.exclude(team=team).exclude(name__in=ours).values_list("name", flat=True).distinct())


def entries(text: str) -> list[Facts]:
    """Read a list of objects; anything else in it is left out."""
    return [one for one in read(text, list) if isinstance(one, dict)]


def read(text: str, kind: type[Any]) -> Any:
    """Read JSON of a kind; an empty one where it is another."""
    try:
        value = json.loads(text)
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _public(facts: Facts) -> str:
    return str(facts.get("public_name") or facts.get("name") or "")
