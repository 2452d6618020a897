"""What the runs of one worker store at the same time shares a transaction, as what a loop's clients send does."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from agents_app.worker.event_writer import RunEventWriter
from conversations.core import principals
from conversations.core.db_threads import POOL_SIZE
from conversations.events import log
from conversations.events.log import writer_threads as module
from conversations.events.log.stored_totals import TOTALS
from conversations.models import Event, Run
from conversations.runs.claims import Claim

pytestmark = pytest.mark.django_db(transaction=True)
RUNS = 20
THREADS = 1 if connection.vendor == "sqlite" else POOL_SIZE["writer"] - 1  # each commits for its own conversations


@pytest.fixture
def writer() -> Iterator[log.WriterThreads]:
    """A writer of the log of the test's own, at work."""
    made = log.WriterThreads()
    made.start()
    yield made
    made.close()


def event_writer_of(writer, number: int) -> RunEventWriter:
    key, run = f"c{number}", f"run-{number}"
    queued = {"event": "run.queued", "id": "q", "run_id": run, "agent": "Clerk", "input_seq": 1}
    log.append([log.from_internal(key, queued, principals.SYSTEM)])
    Run.objects.filter(id=run).update(status="running", attempt=1)
    return RunEventWriter(Claim(run, 1, key, "Clerk", "agent", 1, None, None, None), writer)


def test_what_runs_store_in_turns_that_follow_each_other_shares_a_transaction(writer, monkeypatch):
    monkeypatch.setattr(module, "GATHER", 600.0)
    event_writers = [event_writer_of(writer, number) for number in range(RUNS)]
    before = TOTALS.commits

    async def store_in_turns():
        tasks = []
        for event_writer in event_writers:
            tasks.append(asyncio.create_task(event_writer.store({"event": "output", "turn": 1, "text": "Five."})))
            await asyncio.sleep(0)
            threading.Event().wait(0.002)  # in which the writer's thread could begin: the time is what is tested
        await asyncio.gather(*tasks)

    asyncio.run(store_in_turns())

    assert TOTALS.commits - before <= THREADS
    assert Event.objects.filter(kind="output").count() == RUNS
