"""A recorded call of an MCP tool made again: on its own server, found by its key, or refused with the reason."""

from contextlib import contextmanager

import pytest
from agents.testing import assistant_message

from conversations.core.errors import Conflict
from conversations.models import ToolCall
from conversations.runs.replay import request_replay
from tests.agents_app.test_mcp_servers import Desk, call, connected, quick, row, team_of  # noqa: F401  # a fixture
from tests.support.agents_running import ended_runs, send_message
from tests.support.cast import cast
from tests.support.live import until
from tests.support.replay_desk import ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    ran = Desk(tmp_path_factory.mktemp("desk") / "effects").start()
    yield ran
    ran.kill()


@pytest.fixture
def recorded(desk):
    """A call of `desk_stamp`, which is `stamp` on its server."""
    desk.effects.write_text("")
    with connected(office(desk, [call("desk_stamp", {"words": "A7"})], [assistant_message("Stamped.")]), "desk_stamp"):
        send_message()
        ended_runs(within=60)
    call_row = ToolCall.objects.get()
    assert (call_row.status, call_row.mcp_server, desk.did) == ("done", "desk", ["stamp:A7"])
    return call_row


def office(desk, *steps):
    return team_of(*steps, servers=[desk.spec(allow=["stamp"], prefix="desk_")])


@contextmanager
def serving(team, name):
    """Run a worker until its rows tell of the server's tool, which is what an action reads."""
    with connected(team, name):
        until(lambda: set(row()) == {name}, within=60, what="the rows to tell of it")
        yield


@pytest.mark.slow
def test_it_is_called_on_its_server_by_its_name_there(desk, recorded):
    with serving(office(desk), "desk_stamp"):
        new = request_replay.request_replay(cast()["admin"], recorded.id, reason="Was it stamped?", tool="desk_stamp")
        run = ended(new.run, within=60)

    again = ToolCall.objects.get(id=new.call)
    assert (run.status, again.status, again.replay_of, again.mcp_server) == ("done", "done", recorded.id, "desk")
    assert desk.did == ["stamp:A7", "stamp:A7"]


def test_a_tool_that_its_server_does_not_offer_any_more_is_not_called(desk, recorded):
    other = team_of(servers=[desk.spec(allow=["shred"], prefix="desk_")])
    with serving(other, "desk_shred"), pytest.raises(Conflict) as refused:
        request_replay.request_replay(cast()["admin"], recorded.id, reason="Was it stamped?", tool="desk_stamp")

    assert "MCP server desk is disconnected or dropped it" in refused.value.message
    assert desk.did == ["stamp:A7"]
