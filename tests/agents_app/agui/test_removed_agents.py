"""What is left of a remote agent that an admin has removed."""

import pytest

from agents_app.worker import worker as workers
from conversations.core.database_clock import database_now
from conversations.core.principals import SYSTEM
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.models import Agent, AgentElsewhere, Run
from conversations.runs import edit_remote_agents
from tests.support.agents_running import ended_runs, send_message, team, working
from tests.support.live import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch):
    monkeypatch.setattr(workers, "BEAT_EVERY", 0.1)
    monkeypatch.setattr(workers, "RENEW_EVERY_S", 0.1)


def register(*names: str) -> None:
    for name in names:
        edit_remote_agents.register(SYSTEM, RemoteAgent(name, "https://agents.example.org/"))


def is_served(name: str) -> bool:
    return Agent.objects.filter(team=edit_remote_agents.TEAM, name=name, served_until__gt=database_now()).exists()


@pytest.mark.parametrize("others", [[], ["Tides"]])
def test_the_row_that_a_worker_wrote_while_the_agent_was_removed_goes(others):
    register("Weather", *others)
    with working(team()):
        until(lambda: is_served("Weather"), what="the worker to serve it")

        AgentElsewhere.objects.filter(name="Weather").delete()  # the worker wrote its row after that

        until(lambda: not is_served("Weather"), within=10, what="its row to be deleted")


def queued(name: str) -> None:
    Agent.objects.create(team=edit_remote_agents.TEAM, name=name, is_entry=True)
    send_message(key=name, to=f"agent:{name}")
    Run.objects.filter(agent=name).update(team=edit_remote_agents.TEAM)


def test_the_queued_run_of_the_last_one_ends():
    queued("Weather")
    Agent.objects.all().delete()

    with working(team()):
        (run,) = ended_runs()

    assert (run.status, run.reason.partition(":")[0]) == (
        "incompatible",
        "the team AG-UI registered no longer has the agent Weather",
    )


def test_the_queued_run_of_one_that_no_worker_serves_yet_stays():
    register("Tides")
    queued("Tides")

    workers._look_after({}, lambda run: False)

    assert Run.objects.get().status == "queued"
