"""What waits in the queue when a worker comes: all of it is begun, as far as there is room, without a pause between."""

import asyncio
from typing import Any

import pytest
from agents import Agent, Model
from django.db import OperationalError

from agents_app.teams.definition import Team
from agents_app.worker import worker as workers
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Run
from tests.support.agents_running import send_message, working
from tests.support.live import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
RUNS = 7


class Silent(Model):
    """Never answers: no run ends, and none tells that there is room."""

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream_response(self, *_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()
        yield


def test_more_queued_runs_than_are_claimed_at_a_time_begin_at_once(monkeypatch):
    monkeypatch.setattr(workers, "AT_A_TIME", 2)
    monkeypatch.setattr(workers, "LOOK_EVERY", 600.0)
    monkeypatch.setattr(workers, "LOOK_EVERY_ALONE", 600.0)
    silent = Team(name="test", agents=[Agent(name="Clerk", model=Silent())], entry=["Clerk"])
    with working(silent, stop_s=0):  # registers the agent
        pass
    for n in range(RUNS):
        send_message("hello", key=f"c{n}")

    with working(silent, per_team=RUNS - 1, stop_s=0):
        until(lambda: Run.objects.filter(status="running").count() == RUNS - 1, within=20)
        assert Run.objects.get(status="queued")


def test_a_run_whose_team_cannot_be_read_holds_up_none_that_was_claimed_with_it(monkeypatch):
    def broken(conversation: str) -> str:
        if conversation == "c0":
            raise OperationalError("the disk says no")
        return "first"

    monkeypatch.setattr(workers, "_last_team", broken)
    teams = [
        Team(name=name, agents=[Agent(name=name, model=Silent()), Agent(name="Clerk", model=Silent())], entry=[name])
        for name in ("first", "second")
    ]
    with working(*teams, stop_s=0):  # registers the agents
        pass
    for n in range(3):
        queue_run(f"c{n}", "Clerk")

    with working(*teams, stop_s=0) as worker:
        until(lambda: len(worker._active_runs) == 3, within=10, what="all three to begin")


def queue_run(key: str, agent: str) -> None:
    """Queue a run of an agent that no message may address."""
    body = {"event": "run.queued", "run_id": f"run-{key}", "agent": agent, "run_kind": "agent", "input_seq": 1}
    log.append([log.from_internal(key, {"event": "log", "message": "hello"}, SYSTEM)])
    log.append([log.from_internal(key, body, SYSTEM)])
