"""What waits in the queue when a worker comes: all of it is begun, as far as there is room, without a pause between."""

import asyncio
from typing import Any

import pytest
from agents import Agent, Model

from agents_app.teams.definition import Team
from agents_app.worker import worker as workers
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
    monkeypatch.setattr(workers, "POLL_EVERY_S", 600.0)
    monkeypatch.setattr(workers, "POLL_EVERY_ALONE_S", 600.0)
    silent = Team(name="test", agents=[Agent(name="Clerk", model=Silent())], entry=["Clerk"])
    with working(silent, stop_s=0):  # registers the agent
        pass
    for n in range(RUNS):
        send_message("hello", key=f"c{n}")

    with working(silent, per_team=RUNS - 1, stop_s=0):
        until(lambda: Run.objects.filter(status="running").count() == RUNS - 1, within=20)
        assert Run.objects.get(status="queued")
