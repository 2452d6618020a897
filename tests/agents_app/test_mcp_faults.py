"""An MCP server that lies, breaks or sends too much costs its own tools and calls, never a run. In the tests' own
process: `Faulty` is both the server and its transport."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from agents import Agent
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, TextContent
from mcp.types import Tool as McpTool

from agents_app.mcp import connections, limits
from agents_app.mcp.servers import McpServer
from agents_app.teams.definition import Team
from conversations.core.principals import SYSTEM
from conversations.models import Agent as AgentRow
from conversations.models import Approval, Run, ToolCall, ToolSchema
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.live import ROOT, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

SO = [assistant_message("So be it.")]


def listed(name, description=""):
    return McpTool(name=name, description=description, inputSchema={"type": "object"})


@dataclass(frozen=True)
class Faulty(McpServer):
    """A server whose list, answer and state a test sets."""

    name: str = "desk"
    url: str = "http://desk.invalid/mcp"
    tools: list[McpTool] = field(default_factory=lambda: [listed("stamp")])
    answer: list[str] = field(default_factory=lambda: ["stamped"])
    problems: list[Exception] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)
    fails: bool = False

    def transport(self):
        return self

    async def connect(self):
        pass

    async def list_tools(self):
        if self.problems:
            raise self.problems[0]
        return list(self.tools)

    async def call_tool(self, name, arguments, meta=None):
        content = [TextContent(type="text", text=text) for text in self.answer]
        return CallToolResult(content=content, isError=self.fails)

    async def cleanup(self):
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(connections, "BACK_OFF", (0.05, 0.2))
    monkeypatch.setattr(connections, "POLL_EVERY_S", 0.05)


def team_of(*steps, server):
    clerk = Agent(name="Clerk", model=ScriptedModel(steps))
    return Team(name="office", agents=[clerk], entry=["Clerk"], mcp_servers=[server])


def names(team):
    return [tool.name for tool in team.agents[0].tools]


def offered(team, number):
    return [tool.name for tool in team.agents[0].model.calls[number].tools]


def call(name="stamp", call_id="c1"):
    return function_call(name, {}, call_id=call_id)


def test_of_two_tools_with_one_name_the_first_is_offered_and_the_other_told():
    server = Faulty(tools=[listed("stamp", "Stamp."), listed("stamp", "Stamp again."), listed("file")])
    team = team_of([call()], SO, server=server)
    with working(team) as worker:
        until(lambda: "file" in names(team), what="the server's tools")
        send_message()
        (run,) = ended_runs()
        problem = worker.trouble()

    assert (run.status, offered(team, 0)) == ("done", ["stamp", "file"])
    assert problem.endswith("(give the server a prefix): stamp")
    (collision,) = json.loads(AgentRow.objects.get(name="Clerk").problems)
    assert "has two tools or handoffs called 'stamp'" in collision


def test_a_tool_whose_name_no_model_server_accepts_is_offered_under_one_that_they_do(monkeypatch):
    called = []

    async def call_tool(self, name, arguments, meta=None):
        called.append(name)
        return CallToolResult(content=[])

    monkeypatch.setattr(Faulty, "call_tool", call_tool)
    server = Faulty(tools=[listed("files.read"), listed("Größe, in m²"), listed("x" * 128)], prefix="d:")
    team = team_of([call("d_files_read")], SO, server=server)
    with working(team) as worker:
        until(lambda: names(team), what="the server's tools")
        send_message()
        (run,) = ended_runs()
        assert not worker.trouble()

    assert (run.status, called) == ("done", ["files.read"])
    assert offered(team, 0) == ["d_files_read", "d_Gr__e__in_m_", f"d_{'x' * 62}"]
    assert event_bodies("tool_step")[0]["name"] == "d_files_read"
    facts = json.loads(AgentRow.objects.get(name="Clerk").tools)
    assert [tool["name_there"] for tool in facts] == ["files.read", "Größe, in m²", "x" * 128]


def test_a_tool_whose_name_cannot_be_stored_is_reported():
    server = Faulty(tools=[listed("stamp"), listed("a\0b"), listed("x" * 129), listed("bad\n")], block=["bad\n"])
    team = team_of(SO, server=server)
    with working(team) as worker:
        until(lambda: names(team), what="the server's tools")
        assert names(team) == ["stamp"]
        problem = worker.trouble()

    assert problem.endswith(f"not offered, since names must be 1 to 128 printable characters: 'a\\x00b', '{'x' * 40}'")


def test_names_that_the_server_does_not_list_are_reported_while_it_does_not():
    server = Faulty(
        tools=[listed("shred_file")], allow=["shred_file", "stamp"], block=["shred"], ask=["shred", "stamp"]
    )
    team = team_of(SO, server=server)

    def state():
        return worker.facts()["mcp"]["office"]["desk"]

    with working(team) as worker:
        until(lambda: names(team) == ["shred_file"], what="the server's tools")
        assert state().split("; ") == [
            "allow has names of tools that it does not list: stamp",
            "block has names of tools that it does not list: shred",
            "ask has names of tools that it does not list: shred, stamp",
        ]
        assert state() in worker.trouble()
        server.tools[:] = [listed("shred"), listed("stamp"), listed("shred_file")]
        until(lambda: state() == "ok", what="the longer list")
        assert names(team) == ["stamp", "shred_file"]


def test_a_call_of_a_server_that_has_just_broken_off_is_told_so():
    server, workers = Faulty(), []

    async def as_it_breaks(request):
        server.problems.append(OSError("no route"))
        await asyncio.to_thread(until, lambda: workers[0].trouble(), what="the loss to be seen")
        return [call()]

    team = team_of(ModelStep.respond(as_it_breaks), [call(call_id="c2")], SO, SO, server=server)
    with working(team) as worker:
        workers.append(worker)
        until(lambda: names(team), what="the server's tools")
        send_message()
        (run,) = ended_runs()
        send_message("again")
        ended_runs(2)

    assert run.status == "done"
    steps = [step for step in event_bodies("tool_step") if step["status"] == "error"]
    assert [step["tool_call_id"] for step in steps] == ["c1", "c2"]
    assert all("desk is not connected (down: no route): nothing was called" in step["output"] for step in steps)
    assert offered(team, 3) == []  # the next run's


def given_outputs(team, number):
    """Return the outputs of calls that a model was given, by call id."""
    items = team.agents[0].model.calls[number].input
    return {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}


def without_stamp(server, team, answer):
    """A model's step during which the server drops `stamp`."""

    async def step(request):
        server.tools[:] = [tool for tool in server.tools if tool.name != "stamp"]
        await asyncio.to_thread(until, lambda: "stamp" not in names(team[0]), what="the shorter list")
        return [answer]

    return ModelStep.respond(step)


def test_a_call_of_a_tool_that_the_server_has_dropped_is_refused_and_the_run_goes_on():
    server, team = Faulty(tools=[listed("stamp"), listed("file")]), []
    team.append(team_of(without_stamp(server, team, call("file")), [call(call_id="c2")], SO, server=server))
    with working(team[0]):
        until(lambda: "stamp" in names(team[0]), what="the server's tools")
        send_message()
        (run,) = ended_runs()

    (refused,) = event_bodies("policy.refused")
    assert (run.status, refused["name"], refused["tool_call_id"]) == ("done", "stamp", "c2"), run.reason
    assert refused["reason"] == "there is no such tool"
    assert given_outputs(team[0], 2)["c2"] == "Tool 'stamp' not found."


def test_a_call_of_a_server_that_is_away_since_before_the_run_is_refused_and_the_run_goes_on():
    server = Faulty()
    team = team_of(SO, [call()], SO, server=server)
    with working(team) as worker:
        until(lambda: names(team), what="the server's tools")
        send_message()
        ended_runs()
        server.problems.append(OSError("no route"))
        until(lambda: worker.trouble(), what="the loss to be seen")
        send_message("again")
        run = ended_runs(2)[-1]

    assert (run.status, event_bodies("policy.refused")[0]["name"]) == ("done", "stamp"), run.reason


def test_what_a_model_is_given_of_a_result_is_limited(monkeypatch):
    monkeypatch.setattr(limits, "MAX_TEXT", 10)
    server = Faulty(answer=["12345", "6789012", "never"])
    team = team_of([call()], SO, server=server)
    with working(team):
        until(lambda: names(team), what="the server's tools")
        send_message()
        ended_runs()

    (output,) = (item for item in team.agents[0].model.calls[1].input if item.get("type") == "function_call_output")
    assert [part["text"] for part in output["output"]] == ["12345", "67890", limits.CUT]


def test_a_result_of_structured_content_alone_is_its_json(monkeypatch):
    async def call_tool(self, name, arguments, meta=None):
        return CallToolResult(content=[], structuredContent={"rows": 3, "unit": "m²"}, isError=self.fails)

    monkeypatch.setattr(Faulty, "call_tool", call_tool)
    for server in (Faulty(), Faulty(fails=True)):
        team = team_of([call()], SO, server=server)
        with working(team):
            until(partial(names, team), what="the server's tools")
            send_message(key=f"fails {server.fails}")
            ended_runs(1 + server.fails)

    good, bad = (event_bodies("tool_step", f"fails {fails}")[-1]["output"] for fails in (False, True))
    assert good == {"type": "text", "text": '{"rows": 3, "unit": "m²"}'}
    assert bad == '{"rows": 3, "unit": "m²"}'


def test_the_text_of_an_error_is_limited(monkeypatch):
    monkeypatch.setattr(limits, "MAX_TEXT", 10)
    server = Faulty(answer=["12345678901234567890"], fails=True)
    team = team_of([call()], SO, server=server)
    with working(team):
        until(lambda: names(team), what="the server's tools")
        send_message()
        ended_runs()

    assert event_bodies("tool_step")[-1]["output"] == f"1234567890\n{limits.CUT}"


def test_a_list_that_is_another_one_at_each_look_is_taken_over_rarely(monkeypatch):
    monkeypatch.setattr(connections, "POLL_EVERY_S", 0.01)

    class Ticking(Faulty):
        """A server whose descriptions say how often it was asked."""

        async def list_tools(self):
            self.looks.append(1)
            return [listed("stamp", f"Asked {len(self.looks)} times.")]

    server = Ticking()
    team = team_of(SO, server=server)
    with working(team):
        until(lambda: len(server.looks) > 100, what="a hundred looks")

    assert 1 < ToolSchema.objects.filter(name="stamp").count() < 20


def test_the_tools_of_a_list_beyond_its_limit_are_not_offered(monkeypatch):
    monkeypatch.setattr(limits, "MAX_LIST", 500)
    server = Faulty(tools=[listed("stamp"), listed("file", "x" * 500), listed("shred")])
    team = team_of(SO, server=server)
    with working(team):
        until(lambda: names(team), what="the server's tools")
        assert names(team) == ["stamp"]


def test_lines_on_standard_output_that_are_no_messages_are_told_once(tmp_path, caplog):
    program = "import runpy, sys; print('debug ' * 9 + chr(10), flush=True); print('more' + chr(10), flush=True);"
    program += "runpy.run_module('tests.support.mcp_serial_desk', run_name='x')"
    command = [sys.executable, "-c", program, str(tmp_path / "effects")]
    server = McpServer("noisy", command=command, cwd=str(ROOT), env={"PATH": os.environ["PATH"]}, connect_s=60)
    team = team_of(SO, server=server)
    with working(team):
        until(lambda: names(team), what="the server's tools")

    (record,) = (record for record in caplog.records if record.name == "mcp.client.stdio")
    assert record.getMessage().startswith("the MCP server noisy writes lines to its standard output")
    assert record.exc_info is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [Faulty("prod"), Faulty("desk", tools=[listed("amp")], prefix="st")],
    ids=["of another server", "another of the same server"],
)
def test_a_call_approved_for_one_tool_is_not_made_with_another_of_the_same_schema(other):
    server = Faulty(ask=True)
    with working(team_of([call()], server=server)) as worker:
        until(lambda: worker.facts()["mcp"]["office"]["desk"] == "ok", what="the server's tools")
        send_message()
        until(lambda: Run.objects.filter(status="waiting").exists(), what="the request")
    decide.decide(SYSTEM, Approval.objects.get().id, "approve")

    with working(team_of(SO, server=replace(other, ask=True))):
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status) == ("incompatible", "blocked")
    assert event_bodies("run.incompatible")[0]["reason"] == "a tool whose approval was requested has changed: stamp"


def test_a_call_that_ends_with_its_connection_may_have_taken_effect():
    """The transport may tell the call of it before anybody else."""

    class Closing:
        async def call_tool(self, *_):
            raise MCPError(CONNECTION_CLOSED, "Connection closed")

    link = connections.McpConnection(Faulty(), changed=None)
    link._inner = Closing()

    with pytest.raises(connections.McpDown, match="broke: the call may have taken effect"):
        asyncio.run(link.call_tool("stamp", {}))
