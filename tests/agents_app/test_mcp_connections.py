"""One connection to an MCP server: what it does when something else fails meanwhile."""

import asyncio

import pytest

from agents_app.mcp import connections
from conversations.core.errors import Unavailable


@pytest.mark.slow
def test_a_server_that_is_lost_while_the_database_is_away_is_connected_again(monkeypatch):
    monkeypatch.setattr(connections, "BACK_OFF", (0.05, 0.2))

    class Flaky:
        """A server and its transport: down as long as `is_down`."""

        name, connect_s, prefix, is_down = "desk", 30, "", False
        allow, block, ask = None, (), False

        def transport(self):
            return self

        def takes(self, tool):
            return True

        async def connect(self):
            pass

        async def list_tools(self):
            if self.is_down:
                raise OSError("no route")
            return []

        async def cleanup(self):
            pass

    server, states = Flaky(), asyncio.Queue()

    async def without_the_database(link):
        states.put_nowait(link.state)
        if link.state != "ok":
            raise Unavailable("the database is away")

    async def lost_and_back():
        link = connections.McpConnection(server, without_the_database)
        running = asyncio.create_task(link.run())
        async with asyncio.timeout(30):
            assert await states.get() == "ok"
            server.is_down = True
            assert await states.get() == "down: no route"
            server.is_down = False
            assert await states.get() == "ok"
            link.close()
            await running

    asyncio.run(lost_and_back())
