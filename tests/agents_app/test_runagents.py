"""`runagents` before it serves: what an earlier process left, a directory that is held, a team that is wrong."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents_app.management.commands.runagents import Command
from agents_app.worker.worker import Worker
from conversations.core import data_dir
from conversations.events import log
from conversations.models import Run
from tests.support import teamwork
from tests.support.cast import person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite("one process alone runs agents")]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """How the runs stood when the command began to serve; it ends at once."""
    statuses: list[str] = []

    async def serve(command: Command, teams: list[Any]) -> None:
        statuses.extend(await _statuses())

    monkeypatch.setattr(Command, "_serve", serve)
    settings.DATA_DIR = tmp_path
    return statuses


async def _statuses() -> list[str]:
    return [status async for status in Run.objects.values_list("status", flat=True)]


def test_what_another_process_had_begun_is_interrupted_before_it_serves(served: list[str]) -> None:
    teamwork.team()
    teamwork.say(person("owner", "admin"))
    teamwork.claim()

    Command()._run_here([])

    assert served == ["interrupted"]


def test_it_does_not_serve_a_directory_that_another_process_holds(served: list[str], tmp_path: Path) -> None:
    with data_dir.hold(tmp_path), pytest.raises(CommandError, match="in use by another Switchboard"):
        Command()._run_here([])

    assert served == []


def test_a_wrong_team_is_told_in_a_line(served: list[str], settings: Any) -> None:
    settings.CONFIG = settings.CONFIG.model_copy(update={"teams": "no.such.team"})

    with pytest.raises(CommandError, match="there is no such package"):
        call_command("runagents")


def test_what_is_written_is_stored_before_it_ends_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[log.WriterThreads] = []

    class NotedWriter(log.WriterThreads):
        def close(self, *arguments: Any) -> Any:
            closed.append(self)
            return super().close(*arguments)

    async def fail(worker: Worker) -> None:
        raise RuntimeError("down")

    monkeypatch.setattr(log, "WriterThreads", NotedWriter)
    monkeypatch.setattr(Worker, "run", fail)

    with pytest.raises(RuntimeError, match="down"):
        asyncio.run(Command()._serve([]))

    assert len(closed) == 1
