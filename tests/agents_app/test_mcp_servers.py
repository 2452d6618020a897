"""MCP servers of a team, real ones: connected, lost, found again; what their tools are here and what they are not."""

import asyncio
import dataclasses
import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents import Agent, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from agents_app.mcp import connections
from agents_app.mcp import tools as mcp_tools
from agents_app.mcp.servers import McpServer
from agents_app.teams.checks import check
from agents_app.teams.definition import NoContext, Team, TeamError
from conversations.core.principals import SYSTEM
from conversations.models import Agent as AgentRow
from conversations.models import Approval, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.policy.edit_policy import load_policies
from conversations.runs.policy.evaluate import PolicyRule
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import cast, client_of
from tests.support.forking import bare_nursery
from tests.support.live import ROOT, free_port, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

SO = [assistant_message("So be it.")]


class Desk:
    """A server in a process of its own, over HTTP."""

    def __init__(self, effects):
        self.effects, self.port = effects, free_port()
        effects.touch()
        self.process = None

    def start(self):
        command, nowhere = ["-m", "tests.support.mcp_desk", str(self.effects), str(self.port)], Path(os.devnull)
        self.process = bare_nursery(ROOT).fork(command, env=os.environ, stdout=nowhere, stderr=nowhere)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def did(self):
        return self.effects.read_text().split()

    def spec(self, **more):
        return McpServer("desk", url=f"http://127.0.0.1:{self.port}/mcp", **more)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    desk = Desk(tmp_path_factory.mktemp("desk") / "effects").start()
    yield desk
    desk.kill()


@pytest.fixture
def desk(running):
    running.effects.write_text("")
    return running


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(connections, "BACK_OFF", (0.05, 0.2))
    monkeypatch.setattr(connections, "POLL_EVERY_S", 0.2)
    monkeypatch.setattr(mcp_tools, "FIRST_S", 2.0)  # `connected` waits for as long as it takes


def team_of(*steps, servers, tools=(), **more):
    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=list(tools))
    return Team(name="office", agents=[clerk], entry=["Clerk"], mcp_servers=servers, **more)


@contextmanager
def connected(team, *names):
    """Run a worker whose servers are connected, whatever the machine's load."""
    with working(team) as worker:
        until(lambda: set(names) <= {tool.name for tool in team.agents[0].tools}, within=60, what="the servers' tools")
        yield worker


def call(name, arguments=None, call_id="c1"):
    return function_call(name, arguments or {}, call_id=call_id)


def offered(team, number=0):
    return sorted(tool.name for tool in team.agents[0].model.calls[number].tools)


def states(worker):
    return worker.facts()["mcp"]["office"]


def row():
    return {tool["name"]: tool for tool in json.loads(AgentRow.objects.get(name="Clerk").tools)}


# What its tools are here


@pytest.mark.slow
def test_a_tool_is_called_by_its_name_on_the_server_whatever_the_prefix(desk):
    team = team_of(
        [call("city_stamp", {"words": "A7"})], SO, servers=[desk.spec(prefix="city_", block=["shred", "slow"])]
    )
    with connected(team, "city_stamp") as worker:
        send_message()
        (run,) = ended_runs()
        assert states(worker) == {"desk": "ok"}

    assert (run.status, desk.did) == ("done", ["stamp:A7"])
    assert offered(team) == ["city_fail", "city_stamp"]
    start, end = event_bodies("tool_step")
    assert (start["name"], start["origin"], start["mcp_server"]) == ("city_stamp", "mcp", "desk")
    assert "stamp:A7 done" in json.dumps(end["output"])
    assert start["effect"] == "unsafe"  # its server says read-only, which is not trusted
    facts = row()["city_stamp"]
    assert (facts["mcp_server"], facts["name_there"], facts["effect"]) == ("desk", "stamp", "unsafe")
    assert team.agents[0].tools == []  # the worker has left the team as it was


def test_only_allowed_tools_are_offered_to_the_agents_that_are_named(desk):
    team = team_of(
        [call("stamp")], SO, servers=[desk.spec(allow=["stamp", "shred"], block=["shred"], agents=["Clerk"])]
    )
    other = Agent(name="Other")
    team = dataclasses.replace(team, agents=[*team.agents, other])
    with connected(team, "stamp"):
        assert other.tools == []
        send_message()
        ended_runs()

    assert offered(team) == ["stamp"]


def test_a_run_that_waits_when_the_worker_starts_has_the_tools(desk, monkeypatch):
    monkeypatch.setattr(mcp_tools, "FIRST_S", 60.0)
    spec = desk.spec(allow=["stamp"], connect_s=60)
    team = team_of([call("stamp")], SO, servers=[spec])
    with connected(team_of(SO, servers=[spec]), "stamp"):
        pass  # the agent is known and its server there; nobody serves the agent
    send_message()

    with working(team):
        (run,) = ended_runs()

    assert (run.status, offered(team), desk.did) == ("done", ["stamp"], ["stamp"])


@pytest.mark.slow
def test_the_policy_and_the_team_decide_about_its_calls(desk):
    calls = [call("m_stamp", call_id="c1"), call("m_shred", {"words": "x"}, call_id="c2"), call("m_fail", call_id="c3")]
    load_policies(SYSTEM, [PolicyRule("", "m_shred", "deny"), PolicyRule("Clerk", "m_fail", "ask")])
    team = team_of(calls, SO, servers=[desk.spec(prefix="m_", ask=["stamp"])])
    with connected(team, "m_stamp"):
        send_message()
        ended_runs()
        assert desk.did == []
        assert dict(ToolCall.objects.values_list("name", "status")) == {
            "m_stamp": "waiting", "m_shred": "blocked", "m_fail": "waiting",
        }  # fmt: skip
        for approval in Approval.objects.all():
            decide.decide(SYSTEM, approval.id, "approve")
        (run,) = ended_runs()

    assert (run.status, desk.did) == ("done", ["stamp"])
    assert {request["why"] for request in event_bodies("approval.requested")} == {
        "m_stamp requires approval, as set in the team's code",
        "policy requires approval for m_fail by Clerk (set by system)",
    }  # fmt: skip


@pytest.mark.slow
def test_odd_arguments_and_errors_of_the_server_are_told_and_the_run_goes_on(desk):
    calls = [call("shred", call_id="c1"), call("stamp", "[1]", call_id="c2"), call("fail", call_id="c3")]
    calls += [call("stamp", "", call_id="c4")]
    team = team_of(calls, SO, servers=[desk.spec()])
    with connected(team, "stamp"):
        send_message()
        (run,) = ended_runs()

    assert (run.status, desk.did) == ("done", ["stamp"])
    statuses_by_call = dict(ToolCall.objects.values_list("call_id", "status"))
    assert statuses_by_call == {"c1": "failed", "c2": "failed", "c3": "failed", "c4": "done"}
    (failed,) = (
        step for step in event_bodies("tool_step") if step["tool_call_id"] == "c3" and step["status"] == "error"
    )
    assert (failed["output"], failed["error"]) == ("Error executing tool fail", "McpFailed: Error executing tool fail")


def test_a_call_that_ends_with_an_error_of_the_protocol_is_made_once(desk):
    team = team_of([call("stamp", {"words": "torn"})], SO, servers=[desk.spec()])
    with connected(team, "stamp"):
        send_message()
        (run,) = ended_runs()

    assert (run.status, desk.did) == ("done", ["stamp:torn"])
    assert ToolCall.objects.get().status == "failed"


def test_a_call_that_takes_too_long_is_a_timeout(desk):
    team = team_of([call("slow")], SO, servers=[desk.spec(call_s=0.5)])
    with connected(team, "slow"):
        send_message()
        (run,) = ended_runs()

    assert (run.status, desk.did) == ("done", ["slow"])
    assert ToolCall.objects.get().status == "timeout"


def test_a_name_that_something_else_has_is_not_offered_and_said(desk):
    @function_tool
    def stamp() -> str:
        """Stamp here."""
        return "ours"

    team = team_of([call("stamp")], SO, servers=[desk.spec(allow=["stamp", "shred"])], tools=[stamp])
    with connected(team, "shred") as worker:
        send_message()
        ended_runs()
        assert states(worker)["desk"].startswith("not offered, since another tool or handoff has the name")
        (problem,) = json.loads(AgentRow.objects.get(name="Clerk").problems)
        assert "of the MCP server 'desk'" in problem
        assert "give the server a prefix): stamp" in worker.trouble()

    assert (offered(team), desk.did) == (["shred", "stamp"], [])
    assert event_bodies("tool_step")[-1]["output"] == "ours"


# Connections


@pytest.mark.thorough
def test_a_server_that_was_killed_is_found_again_when_it_is_back(tmp_path):
    desk = Desk(tmp_path / "effects").start()

    def after_the_kill(request):
        outputs.append(json.dumps(request.input, default=str))
        return SO

    outputs = []
    steps = [[call("slow")], ModelStep.respond(after_the_kill), SO, [call("more", call_id="c2")], SO]
    team = team_of(*steps, servers=[desk.spec()])
    try:
        with connected(team, "slow") as worker:
            send_message("one")
            until(lambda: desk.did == ["slow"], what="the call to be there")
            desk.kill()
            (run,) = ended_runs()
            assert run.status == "done"
            assert ToolCall.objects.get().status == "failed"
            assert "the connection to the MCP server desk broke: the call may have taken effect" in outputs[0]

            until(lambda: states(worker)["desk"] != "ok", what="the loss to be seen")
            assert worker.facts()["warnings"][0].startswith("MCP server desk of office: ")
            send_message("two")
            assert ended_runs(2)[1].status == "done"
            assert offered(team, 2) == []

            desk.effects.with_suffix(".more").touch()  # back with one more tool
            desk.start()
            until(lambda: "more" in row(), within=60, what="the server to be found again")
            send_message("three")
            assert ended_runs(3)[2].status == "done"
    finally:
        desk.kill()

    assert (desk.did, offered(team, 3)) == (["slow", "more"], ["fail", "more", "shred", "slow", "stamp"])


def test_a_call_whose_connection_breaks_is_told_as_perhaps_made():
    class Silent:
        async def call_tool(self, *_):
            await asyncio.Event().wait()

    async def broken():
        link = connections.McpConnection(McpServer("desk", url="http://x"), changed=None)
        link._inner = Silent()
        sent = asyncio.create_task(link.call_tool("stamp", {}))
        link._lost.set()
        async with asyncio.timeout(30):
            await sent

    with pytest.raises(connections.McpDown, match="broke: the call may have taken effect"):
        asyncio.run(broken())


@pytest.mark.slow
def test_a_server_over_stdio_is_started_and_started_again(tmp_path):
    effects = tmp_path / "effects"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-c",
        f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()));"
        "import runpy, sys; sys.argv = ['desk', sys.argv[1]]; runpy.run_module('tests.support.mcp_desk', run_name='x')",
        str(effects),
    ]
    server = McpServer("desk", command=command, env=env, cwd=str(ROOT), allow=["stamp"], connect_s=60)
    team = team_of([call("stamp")], SO, [call("stamp", call_id="c2")], SO, servers=[server])
    with connected(team, "stamp") as worker:
        send_message("one")
        ended_runs()
        first = (tmp_path / "pid").read_text()
        os.kill(int(first), signal.SIGKILL)
        until(lambda: states(worker)["desk"] != "ok" or (tmp_path / "pid").read_text() != first, what="the loss")
        until(lambda: states(worker)["desk"] == "ok", within=60, what="the server to be started again")
        send_message("two")
        ended_runs(2)

    assert effects.read_text().split() == ["stamp", "stamp"]
    assert (tmp_path / "pid").read_text() != first


def serial(tmp_path):
    """Return a server over stdio that answers one request after the other, and notes its process."""
    program = f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()));"
    program += "import runpy, sys; runpy.run_module('tests.support.mcp_serial_desk', run_name='x')"
    command = [sys.executable, "-c", program, str(tmp_path / "effects")]
    return McpServer("desk", command=command, cwd=str(ROOT), env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)})


def test_a_call_may_take_longer_than_a_look_at_a_server_that_does_one_thing_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "LOOK_S", 0.5)
    team = team_of([call("weigh")], SO, servers=[serial(tmp_path)])
    with connected(team, "weigh") as worker:
        send_message()
        (run,) = ended_runs()
        assert states(worker)["desk"] == "ok"

    assert (run.status, ToolCall.objects.get().status) == ("done", "done")
    assert event_bodies("tool_step")[-1]["output"] == {"type": "text", "text": "weigh done"}
    assert (tmp_path / "effects").read_text().split() == ["weigh"]


def test_a_call_over_stdio_ends_with_its_server(tmp_path):
    team = team_of([call("wait")], SO, servers=[serial(tmp_path)])
    with connected(team, "wait"):
        send_message()
        until(lambda: (tmp_path / "effects").exists(), what="the call to be there")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status) == ("done", "failed")


@pytest.mark.slow
def test_without_its_server_a_team_is_served_and_the_pages_say_what_is_missing():
    secret = McpServer("desk", url=f"http://ada:hunter2@127.0.0.1:{free_port()}/mcp?key=hunter3")
    missing = McpServer("local", command=["/nowhere/at-all"])
    team = team_of(SO, servers=[secret, missing])
    with working(team) as worker:
        send_message()
        (run,) = ended_runs()
        trouble = until(worker.trouble, what="the trouble")
        worker._pulse.beat()
        page = client_of(cast()["viewer"]).get("/agents/").content.decode()

    assert (run.status, offered(team)) == ("done", [])
    assert "MCP server desk of office: down: " in trouble
    assert "Could not reach the server" in trouble
    assert "MCP server local of office: down: " in trouble
    assert "hunter" not in trouble + page
    assert "Could not reach the server" in page
    assert "Runs continue without its tools while Switchboard tries to reconnect." in page


# Declared


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ([McpServer("a", url="http://x"), McpServer("a", url="http://y")], "two of its MCP servers are called 'a'"),
        ([McpServer("a")], "'a': must have either a command or a url"),
        ([McpServer("a", command=["x"], url="http://y")], "'a': must have either a command or a url"),
        ([McpServer("a", command="x -y")], "'a': command must be a list"),
        ([McpServer("a", url="http://x", block="shred")], r"'a': block must be a list of names, such as \['shred'\]"),
        ([McpServer("a", url="ftp://x")], "'a': url must be an http or https address"),
        ([McpServer(" ", url="http://x")], "name must be 1 to 100 printable characters"),
        ([McpServer("a", url="http://x", call_s=0)], "connect_s and call_s must be more than 0 seconds"),
        ([McpServer("a", url="http://x", agents=["Nobody"])], "is for 'Nobody', which is not among its agents"),
    ],
)
def test_a_wrong_server_is_found_when_the_team_is_checked(servers, words):
    with pytest.raises(TeamError, match=words):
        check(team_of(SO, servers=servers, context=NoContext))
