"""A client that has seen more than the database has: its claim counts once the epoch has changed."""

import asyncio

import pytest
from django.db import DatabaseError

from conversations.events import epoch
from conversations.realtime.server_runtime import ServerRuntime

pytestmark = pytest.mark.django_db(transaction=True)


async def claimed(runtime):
    """Return whether a client's claim starts a new epoch."""
    return await runtime.change_epoch(runtime.hub.epoch, spared=None)


@pytest.fixture
def runtime():
    runtime = ServerRuntime()
    runtime.hub.epoch = epoch.current()
    yield runtime
    runtime.hub.readers.shutdown()


def test_a_claim_while_the_database_is_away_leaves_room_for_the_next(runtime, monkeypatch):
    before = epoch.current()

    async def work():
        with monkeypatch.context() as away:
            away.setattr(epoch, "change", lambda _: (_ for _ in ()).throw(DatabaseError("away")))
            with pytest.raises(DatabaseError):
                await claimed(runtime)
        return [await claimed(runtime), await claimed(runtime)]

    assert asyncio.run(work()) == [True, False]
    assert epoch.current() == runtime.hub.epoch != before
