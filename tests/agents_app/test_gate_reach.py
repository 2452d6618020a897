"""How far the gate reaches: runs inside runs, handoffs, shared tools, a run's own restriction; what is guarded."""

import asyncio
from functools import partial

import pytest
from agents import Agent, Handoff, RunContextWrapper, Runner, function_tool, handoff
from agents.testing import ScriptedModel

from agents_app.approval_gate.gate import PolicyGuardrail, gate_of, guard_agent, guard_tools
from agents_app.nested_runs import agent_tool, nested_run
from agents_app.run_scope import Restriction, RunScope
from agents_app.teams.definition import Team
from agents_app.teams.served_team import ServedTeam
from agents_app.worker import agent_run
from conversations.models import Approval, Run, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.policy.evaluate import PolicyRule
from tests.agents_app.test_gate import DENY_PAY, SO, Ledger, call, model_input, rules, statuses, tools_of
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.cast import cast
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "effects")


@pytest.fixture
def tools(ledger):
    return tools_of(ledger)


# Runs inside runs, handoffs, tools of several agents


@pytest.mark.parametrize("by", ["agent_tool", "nested_run", "as_tool"])
def test_a_rule_binds_agents_inside_a_call(ledger, tools, by):
    inner = Agent(name="Inner", tools=[tools("pay")], model=ScriptedModel([[call("pay", call_id="in-1")], SO]))

    @function_tool(name_override="dig")
    async def dig(ctx: RunContextWrapper, input: str) -> str:
        return str((await nested_run(ctx, inner, input)).final_output)

    outer = {"agent_tool": lambda: agent_tool(inner, "dig", "Dig."), "nested_run": lambda: dig}
    outer["as_tool"] = lambda: inner.as_tool("dig", "Dig.")
    rules(PolicyRule("Inner", "pay", "deny"))
    with working(team([call("dig", {"input": "go"}, call_id="out-1")], SO, tools=[outer[by]()])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("done", [])
    (refused,) = event_bodies("policy.refused")
    assert refused["agent"] == "Inner"
    if by != "as_tool":  # without our care it is not told under its call
        assert refused["parent_call"] == ToolCall.objects.get(name="dig").id
    assert statuses() == {"dig": "done", "pay": "blocked"}


@pytest.mark.slow
def test_a_rule_asks_before_a_call_inside_an_agent_tool(ledger, tools):
    inner = Agent(name="Inner", tools=[tools("pay")], model=ScriptedModel([[call("pay", call_id="in-1")], SO]))
    rules(PolicyRule("Inner", "", "ask"))
    with working(team([call("dig", {"input": "go"}, call_id="o1")], SO, tools=[agent_tool(inner, "dig", "Dig.")])):
        send_message()
        ended_runs()
        assert ledger.lines == []
        decide.decide(cast()["approver"], Approval.objects.get().id, "approve")
        (run,) = ended_runs()

    assert (
        event_bodies("approval.requested")[0]["why"]
        == "policy requires approval for every tool by Inner (set by system)"
    )
    assert (run.status, ledger.lines) == ("done", ["pay"])


def test_a_tool_that_two_agents_share_is_denied_to_one(ledger, tools):
    shared = [tools("pay")]  # the same list, too
    other = Agent(name="Other", tools=shared, model=ScriptedModel([[call("pay", call_id="c3")], SO]))
    clerk = Agent(
        name="Clerk", tools=shared, handoffs=[other],
        model=ScriptedModel([[call("pay", call_id="c1")], [call("transfer_to_other", {}, call_id="c2")]]),
    )  # fmt: skip
    rules(PolicyRule("Clerk", "pay", "deny"), PolicyRule("", "transfer_to_other", "deny"))
    with working(Team(name="two", agents=[clerk, other], entry=["Clerk"])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("done", ["pay"])
    assert event_bodies("policy.refused")[0]["agent"] == "Clerk"
    assert event_bodies("agent.handoff")[0]["to_agent"] == "Other"  # a handoff is no tool: no rule is about it


# A run's own restriction


@pytest.fixture
def restricted(monkeypatch):
    def restrict(restriction):
        monkeypatch.setattr(agent_run, "RunScope", partial(RunScope, restriction=restriction))

    return restrict


def test_a_call_outside_of_the_allowed_tools_never_dispatches(ledger, tools, restricted):
    restricted(Restriction(frozenset({"look"})))
    served = team(
        [call("look"), call("pay", call_id="c2")], SO, tools=[tools("look"), tools("pay", needs_approval=True)]
    )
    with working(served):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("done", ["look"])
    (refused,) = event_bodies("policy.refused")
    assert (refused["by"], refused["reason"]) == ("allowed_tools", "the request allows look only (allowed_tools)")
    assert "pay was not called: this request allows look only." in model_input(served)


def test_an_empty_list_restricts_nothing_like_an_absent_one(ledger, tools, restricted):
    restricted(Restriction(frozenset()))
    with working(team([call("pay")], SO, tools=[tools("pay")])):
        send_message()
        ended_runs()

    assert ledger.lines == ["pay"]


def test_a_request_for_no_tool_calls_gets_none(ledger, tools, restricted):
    restricted(Restriction(none=True))
    with working(team([call("pay", "nothing")], SO, tools=[tools("pay")])):
        send_message()
        ended_runs()

    assert (ledger.lines, event_bodies("policy.refused")[0]["by"]) == ([], "tool_choice")


def test_what_happens_inside_an_allowed_call_is_part_of_it(ledger, tools, restricted):
    restricted(Restriction(frozenset({"dig"})))
    inner = Agent(name="Inner", tools=[tools("pay")], model=ScriptedModel([[call("pay", call_id="in-1")], SO]))
    with working(team([call("dig", {"input": "go"}, call_id="o1")], SO, tools=[agent_tool(inner, "dig", "Dig.")])):
        send_message()
        ended_runs()

    assert ledger.lines == ["pay"]


# Guarding


def gates(tool):
    return [guardrail for guardrail in tool.tool_input_guardrails if isinstance(guardrail, PolicyGuardrail)]


def test_tools_are_guarded_once_however_often_a_team_is_loaded(tools):
    served = team(SO, tools=[tools("pay")])
    before = served.agents[0].tools
    for _ in range(3):
        ServedTeam(served, None)
        guard_tools(served.agents[0])

    assert served.agents[0].tools is before
    assert len(gates(before[0])) == 1


def test_agents_that_are_reached_by_handoffs_and_as_tools_are_guarded_too(tools):
    inner, last = (Agent(name=name, tools=[tools("pay")]) for name in ("Inner", "Last"))
    middle = Agent(name="Middle", handoffs=[handoff(last)])
    clerk = Agent(name="Clerk", tools=[inner.as_tool("dig", "Dig.")], handoffs=[middle])
    last.handoffs = [clerk]  # a circle

    guard_agent(clerk)

    assert [gate_of(agent.tools[0]).agent for agent in (clerk, inner, last)] == ["Clerk", "Inner", "Last"]


def test_a_guarded_tool_of_nobodys_run_is_as_its_code_says(ledger, tools):
    rules(DENY_PAY)
    clerk = Agent(
        name="Clerk", tools=[tools("pay"), tools("sign", needs_approval=True)],
        model=ScriptedModel([[call("pay"), call("sign", call_id="c2")]]),
    )  # fmt: skip
    guard_agent(clerk)
    result = asyncio.run(Runner.run(clerk, "go"))

    assert (ledger.lines, [item.name for item in result.interruptions]) == (["pay"], ["sign"])
    assert [bool(tool.needs_approval) for tool in clerk.tools] == [False, True]


@pytest.mark.parametrize("name", ["Clerk", "Deputy"])
@pytest.mark.parametrize(
    ("about", "rule"), [("Clerk", "ask"), ("Clerk", "deny"), ("Deputy", "ask"), ("Deputy", "deny")]
)
def test_rules_bind_a_clone_that_is_made_in_a_handoff(ledger, tools, name, about, rule):
    clerk = Agent(name="Clerk", tools=[tools("pay")])
    model = ScriptedModel([[call("pay", call_id="c2")], SO])

    async def make(context, arguments):
        return clerk.clone(name=name, model=model, handoffs=[])

    away = Handoff("deputize", "Have a deputy.", {}, make, agent_name="Deputy", strict_json_schema=False)
    clerk.handoffs, clerk.model = [away], ScriptedModel([[call("deputize", {}, call_id="c1")]])
    rules(PolicyRule(about, "pay", rule))
    with working(Team(name="one", agents=[clerk], entry=["Clerk"])):
        send_message()
        until(lambda: Run.objects.filter(status__in=("waiting", "done", "failed", "incompatible")).first())

    is_bound = about in ("Clerk", name)
    assert ledger.lines == ([] if is_bound else ["pay"])
    assert list(Approval.objects.values_list("status", flat=True)) == (
        ["pending"] if is_bound and rule == "ask" else []
    )
