"""The rows about what workers serve, when several workers write them."""

import pytest
from agents import Agent
from agents.testing import ScriptedModel

from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.teams import agent_registry
from agents_app.teams.definition import Team
from agents_app.teams.served_team import ServedTeam
from conversations.core.database_clock import database_now
from conversations.core.node_heartbeat import Heartbeat
from conversations.models import Agent as AgentRow

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def served(*agents: str, team: str) -> list[ServedTeam]:
    members = [Agent(name=name, model=ScriptedModel([])) for name in agents]
    return [ServedTeam(Team(name=team, agents=members, entry=[agents[0]]), Provider(ModelConfig()))]


def available() -> set[str]:
    return set(AgentRow.objects.filter(served_until__gt=database_now()).values_list("name", flat=True))


def test_a_team_stays_available_when_one_of_its_two_workers_ends():
    town, pair = served("Clerk", team="town"), served("Ida", team="pair")
    agent_registry.register([*town, *pair])
    Heartbeat("worker", lambda: {"teams": {"town": 0}}).beat()

    agent_registry.unregister([*town, *pair])

    assert available() == {"Clerk"}


def test_a_team_ends_with_its_last_worker_though_a_dead_one_has_left_its_row(monkeypatch):
    town = served("Clerk", team="town")
    agent_registry.register(town)
    Heartbeat("worker", lambda: {"teams": {"town": 0}}).beat()
    monkeypatch.setattr("conversations.core.node_heartbeat.GONE_AFTER", 0)

    agent_registry.unregister(town)

    assert available() == set()


def test_a_worker_that_was_silent_writes_the_rows_again_that_another_has_deleted():
    town = served("Clerk", "Porter", team="town")
    agent_registry.register(town)
    AgentRow.objects.update(served_until=1)  # for longer than it counts as served
    agent_registry.register(served("Ida", team="pair"))
    assert available() == {"Ida"}

    agent_registry.renew(town)

    assert available() == {"Clerk", "Porter", "Ida"}


def test_an_agent_of_a_newer_version_of_the_team_stays_when_an_older_one_registers_and_ends():
    new, old = served("Clerk", "Porter", team="town"), served("Clerk", team="town")
    agent_registry.register(new)

    agent_registry.register(old)  # it started later, or its MCP server lists other tools
    agent_registry.unregister(old)
    agent_registry.renew(new)

    assert available() == {"Clerk", "Porter"}


def test_an_agent_that_the_newer_version_of_its_team_has_no_longer_goes_with_the_last_worker_that_has_it():
    old, new = served("Clerk", "Porter", team="town"), served("Clerk", team="town")
    agent_registry.register(old)
    agent_registry.register(new)
    agent_registry.renew(old)
    assert available() == {"Clerk", "Porter"}

    AgentRow.objects.filter(name="Porter").update(served_until=1)  # the old worker is gone
    agent_registry.renew(new)

    assert set(AgentRow.objects.values_list("name", flat=True)) == {"Clerk"}


def test_a_worker_renews_no_agent_of_its_team_that_it_does_not_serve():
    agent_registry.register(served("Clerk", "Porter", team="town"))
    soon = database_now() + 5_000_000
    AgentRow.objects.update(served_until=soon)

    agent_registry.renew(served("Clerk", team="town"))

    assert set(AgentRow.objects.filter(served_until__gt=soon).values_list("name", flat=True)) == {"Clerk"}
