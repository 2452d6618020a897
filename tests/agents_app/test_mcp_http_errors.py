"""What the team learns of an MCP server over HTTP that answers with an error: its status, too."""

import asyncio
import json
from contextlib import contextmanager

import pytest
from agents import UserError
from mcp import MCPError

from agents_app.mcp.connections import McpConnection
from agents_app.mcp.servers import McpServer
from tests.support.answering import Answer, answering

TOOL = {"name": "stamp", "inputSchema": {"type": "object"}}


@contextmanager
def refusing(method, status, body):
    """Serve MCP; a request of this method meets an error. Yield the server."""

    def answer(request):
        if request.method != "POST":
            return Answer(405)
        request = json.loads(request.body)
        if request["method"] == method:
            return Answer(status, body)
        if "id" not in request:
            return Answer(202)
        version = request.get("params", {}).get("protocolVersion")
        info = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"},
        }
        result = info if request["method"] == "initialize" else {"tools": [TOOL]}
        return Answer(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    with answering(answer) as address:
        yield McpServer("desk", url=f"{address}/mcp", connect_s=30)


async def states_of(server, act):
    """Connect until the first state is known, and have `act` go on."""
    states = asyncio.Queue()

    async def note(connection):
        states.put_nowait(connection.state)

    connection = McpConnection(server, note)
    running = asyncio.create_task(connection.run())
    async with asyncio.timeout(60):
        state = await states.get()
        result = await act(connection)
        connection.close()
        await running
    return state, result


async def nothing(_connection):
    return None


@pytest.mark.parametrize(
    ("status", "body"), [(401, b'{"error":"invalid_token"}'), (401, b""), (403, b"no"), (503, b"{}")]
)
def test_a_server_that_refuses_to_connect_is_down_with_its_status(status, body):
    with refusing("initialize", status, body) as server:
        state, _ = asyncio.run(states_of(server, nothing))

    assert state.startswith("down: ")
    assert str(status) in state


@pytest.mark.parametrize(("status", "body"), [(401, b'{"error":"invalid_token"}'), (401, b""), (500, b"{}")])
def test_a_call_that_is_refused_names_the_status(status, body):
    async def call(connection):
        with pytest.raises((MCPError, UserError)) as refusal:
            await connection.call_tool("stamp", {})
        return connection._error_message(None, refusal.value)

    with refusing("tools/call", status, body) as server:
        state, words = asyncio.run(states_of(server, call))

    assert state == "ok"
    assert f"(HTTP {status})" in words
