"""Looking for streams among many other keys of Redis: what is followed is read meanwhile."""

import asyncio

import pytest

from conversations.models import Event
from conversations.transport.recorder import read_streams
from conversations.transport.recorder.database import RecorderDatabase
from conversations.transport.recorder.read_streams import StreamsReader
from conversations.transport.recorder.redis_client import connect
from conversations.transport.recorder.relay import Echoes
from conversations.transport.recorder.store import EntryStore
from tests.support.recorders import add, envelope

pytestmark = pytest.mark.django_db(transaction=True)


class Commands:
    """Notes what the reader asks of Redis; `first_page` is called after the first page of the next SCAN."""

    def __init__(self, client, monkeypatch):
        self.names, self.first_page, self._ask = [], None, client.execute_command
        monkeypatch.setattr(client, "execute_command", self.ask)

    async def ask(self, *command, **options):
        self.names.append(command[0])
        answer = await self._ask(*command, **options)
        if command[0] == "SCAN" and self.first_page is not None:
            self.first_page, act = None, self.first_page
            act()
        return answer


def test_a_message_does_not_wait_until_all_other_keys_were_looked_at(redis_server, bus, monkeypatch):
    monkeypatch.setattr(read_streams, "SLICE", 10)
    monkeypatch.setattr(read_streams, "READ_EVERY", 0.0)
    bus.mset({f"cache:{n}": "x" for n in range(500)})
    add(bus, "chat:conv", envelope("conv", 1))

    async def scan():
        client, database = connect(redis_server.url), RecorderDatabase()
        commands = Commands(client, monkeypatch)
        reader = StreamsReader(client, database, EntryStore(), Echoes(), looked_at=0, from_now=False)
        await reader.resume()
        await reader.round()
        await reader.drain()
        commands.names.clear()
        commands.first_page = lambda: add(bus, "chat:conv", envelope("conv", 2))
        await reader._housekeep()
        await reader.drain()
        await client.aclose()
        await database.close()
        return commands.names

    names = asyncio.run(scan())

    last_page = len(names) - names[::-1].index("SCAN")
    assert "XREAD" in names[:last_page]
    assert sorted(Event.objects.values_list("event_id", flat=True)) == ["m-1", "m-2"]
