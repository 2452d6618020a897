"""The gate: which calls go, wait or are refused, through the real runner. What a tool did is in a file of its own."""

import asyncio
import json
import time
from functools import partial

import pytest
from agents import Agent, RunContextWrapper, Runner, function_tool, handoff
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from agents_app import runner
from agents_app.gate import Gate, Restriction, gate_of, guard, guard_tools
from agents_app.nesting import RunScope, agent_tool, nested_run
from agents_app.roster import Roster
from agents_app.teams import Team
from conversations.actions import approvals
from conversations.actions.policies import load_policies, set_policy
from conversations.models import Approval, Policy, ToolCall
from conversations.policy import Row
from conversations.principals import SYSTEM
from tests.agents_running import MODEL, kinds, over, say, team, told, working
from tests.cast import cast

pytestmark = pytest.mark.django_db(transaction=True)

SO = [assistant_message("So be it.")]
DENY_PAY = Row("", "pay", "deny", "destructive", "no money")


class Ledger:
    """A file that tools append to: it tells what was really entered."""

    def __init__(self, path):
        self.path = path
        path.touch()

    def write(self, word):
        with self.path.open("a") as file:
            file.write(f"{word}\n")

    @property
    def lines(self):
        return self.path.read_text().split()


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "effects")


@pytest.fixture
def tools(ledger):
    """`look` and `pay`, which tell the ledger."""

    def made(name, **more):
        async def enter(amount: int = 1) -> str:
            ledger.write(name)
            return f"{name} done"

        return function_tool(enter, name_override=name, strict_mode=False, **more)

    return made


def rules(*rows):
    load_policies(SYSTEM, rows)


def call(name, arguments=None, call_id="c1", **more):
    return function_call(name, arguments if arguments is not None else {"amount": 5}, call_id=call_id, **more)


def heard(team, number=-1):
    """Answer what the model was told before its last answer."""
    return json.dumps(team.agents[0].model.calls[number].input, default=str)


def statuses():
    return dict(ToolCall.objects.values_list("name", "status"))


# Deny


def test_a_denied_call_is_never_entered_and_the_run_goes_on(ledger, tools):
    rules(DENY_PAY)
    served = team([call("pay")], SO, tools=[tools("pay")])
    with working(served):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", [])
    (refused,) = told("policy.refused")
    identity = {"name": "pay", "qualified_name": "pay", "lookup_key": "bare:pay", "origin": "function"}
    assert identity.items() <= refused.items()
    assert (refused["agent"], refused["turn"], refused["tool_call_id"], refused["by"]) == ("Clerk", 1, "c1", "policy")
    assert (refused["args"], refused["args_raw"], refused["effect"]) == ({"amount": 5}, '{"amount":5}', "destructive")
    assert refused["reason"] == "the policy denies pay of every agent (set by system): no money"
    assert refused["rule"] == {k: v for k, v in DENY_PAY._replace(updated_by="system")._asdict().items() if v}
    assert "pay was not called: the operators of this system do not allow it." in heard(served)
    row = ToolCall.objects.get()
    assert (row.id, row.status, row.call_id) == (refused["tool_call"], "blocked", "c1")
    assert "tool_step" not in kinds()


def test_parallel_calls_are_each_judged(ledger, tools):
    rules(DENY_PAY)
    calls = [
        call("look", call_id="c1"),
        call("pay", call_id="c2"),
        call("look", call_id="c3"),
        call("pay", call_id="c4"),
    ]
    with working(team(calls, SO, tools=[tools("look"), tools("pay")])):
        say()
        over()

    assert ledger.lines == ["look", "look"]
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {
        "c1": "done", "c2": "blocked", "c3": "done", "c4": "blocked",
    }  # fmt: skip


def test_a_denied_call_is_refused_whatever_its_arguments_and_nobody_is_asked(ledger, tools):
    rules(DENY_PAY, DENY_PAY._replace(tool="sign"))
    odd = ["[1]", "nothing", "null", "", '{"amount":"many"}', '{"amount": NaN}']
    calls = [call(name, text, call_id=f"{name}{n}") for n, text in enumerate(odd) for name in ("pay", "sign")]
    with working(team(calls, SO, tools=[tools("pay"), tools("sign", needs_approval=True)])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines, statuses()) == ("done", [], {"pay": "blocked", "sign": "blocked"})
    assert sorted(refused["args_raw"] for refused in told("policy.refused")) == sorted(odd * 2)
    assert not Approval.objects.exists()


# Ask


def test_a_call_that_the_policy_asks_about_waits_and_says_why(ledger, tools):
    rules(Row("Clerk", "pay", "ask", "", "over 3"))
    with working(team([call("pay")], SO, tools=[tools("pay")])):
        say()
        over()
        assert ledger.lines == []
        approvals.decide(cast()["approver"], Approval.objects.get().id, "approve")
        runs = over()

    assert told("approval.requested")[0]["why"] == "the policy asks before pay of Clerk (set by system): over 3"
    assert (runs[0].status, ledger.lines, statuses()) == ("done", ["pay"], {"pay": "done"})


def test_no_rule_loosens_what_the_code_says(ledger, tools):
    rules(Row("Clerk", "pay", "allow", "read"), Row("", "", "allow", "read"))
    with working(team([call("pay")], SO, tools=[tools("pay", needs_approval=True)])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("waiting", [])
    (request,) = told("approval.requested")
    assert (request["why"], request["effect"]) == ("pay needs a person's approval", "unsafe")


def test_the_codes_own_function_still_decides(ledger, tools):
    async def is_much(ctx, arguments, call_id):
        return arguments["amount"] > 3

    calls = [call("pay", {"amount": 1}), call("pay", {"amount": 5}, call_id="c2")]
    with working(team(calls, SO, tools=[tools("pay", needs_approval=is_much)])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("waiting", ["pay"])
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "waiting"}


def test_a_call_that_was_approved_is_refused_when_a_rule_denies_it_by_then(ledger, tools):
    with working(team([call("pay")], SO, tools=[tools("pay", needs_approval=True)])):
        say()
        over()
        rules(DENY_PAY)
        approval = Approval.objects.get()
        approvals.decide(cast()["approver"], approval.id, "approve")
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", [])
    assert ToolCall.objects.get().id == approval.tool_call
    assert statuses() == {"pay": "blocked"}


# Without rules nothing changes


class Amount(BaseModel):
    """A model as a parameter: the SDK reads it only when it invokes the tool."""

    cents: int


def test_odd_arguments_come_to_what_the_tool_makes_of_them_and_nobody_is_asked(ledger, tools):
    odd = {"[1]": "failed", "nothing": "failed", "": "done", '{"amount":"5"}': "done", '{"amount":"x"}': "failed"}
    with working(team([call("pay", text, call_id=f"of {text}") for text in odd], SO, tools=[tools("pay")])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", ["pay", "pay"])
    found = ToolCall.objects.values_list("call_id", "status")
    assert {call_id.removeprefix("of "): status for call_id, status in found} == odd


def test_a_tool_with_a_model_as_its_parameter_does_not_wait(ledger):
    @function_tool
    async def pay(amount: Amount) -> str:
        ledger.write(str(amount.cents))
        return "paid"

    rules(Row("", "look", "deny"))
    with working(team([call("pay", {"amount": {"cents": "7"}})], SO, tools=[pay])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", ["7"])


def test_arguments_that_are_no_object_wait_where_the_policy_asks(ledger, tools):
    rules(Row("", "pay", "ask"))
    with working(team([call("pay", "[1]")], SO, tools=[tools("pay")])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("waiting", [])


# A rule binds running runs


def test_a_rule_that_another_process_sets_binds_the_next_call_within_a_second(ledger):
    made, entered, ruled = [], [], []

    @function_tool
    async def pay() -> str:
        entered.append(made[-1])
        if len(entered) == 3:  # past every action of this process: nothing tells the gate
            await asyncio.to_thread(_deny_behind)
            ruled.append(time.monotonic())
        return "paid"

    def pay_until_refused(asked):
        made.append(time.monotonic())
        is_refused = "was not called" in json.dumps(asked.input, default=str)
        return SO if is_refused else [call("pay", "{}", call_id=f"c{len(entered)}")]

    with working(team(*[ModelStep.respond(pay_until_refused)] * 500, tools=[pay], max_turns=500)):
        say()
        (run,) = over()

    assert (run.status, len(told("policy.refused"))) == ("done", 1)
    assert len(entered) >= 3
    assert max(entered) < ruled[0] + 1.0  # calls are judged after they are made, so a slow machine changes nothing


def _deny_behind():
    from django.db import connection

    Policy.objects.create(agent="", tool="pay", rule="deny", updated_by="user:ada", updated_at="2026-01-01T00:00Z")
    connection.close()


def test_a_rule_set_in_the_same_process_binds_the_very_next_call(ledger, tools):
    @function_tool
    async def look() -> str:
        await asyncio.to_thread(set_policy, SYSTEM, DENY_PAY)
        return "seen"

    with working(team([call("pay")], [call("look", {}, call_id="c2")], [call("pay", call_id="c3")], SO,
                      tools=[tools("pay"), look])):  # fmt: skip
        say()
        over()

    assert ledger.lines == ["pay"]
    assert ToolCall.objects.get(call_id="c3").status == "blocked"


# Runs inside runs, handoffs, tools of several agents


@pytest.mark.parametrize("by", ["agent_tool", "nested_run", "as_tool"])
def test_a_rule_binds_agents_inside_a_call(ledger, tools, by):
    inner = Agent(name="Inner", tools=[tools("pay")], model=ScriptedModel([[call("pay", call_id="in-1")], SO]))

    @function_tool(name_override="dig")
    async def dig(ctx: RunContextWrapper, input: str) -> str:
        return str((await nested_run(ctx, inner, input)).final_output)

    outer = {"agent_tool": lambda: agent_tool(inner, "dig", "Dig."), "nested_run": lambda: dig}
    outer["as_tool"] = lambda: inner.as_tool("dig", "Dig.")
    rules(Row("Inner", "pay", "deny"))
    with working(team([call("dig", {"input": "go"}, call_id="out-1")], SO, tools=[outer[by]()])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", [])
    (refused,) = told("policy.refused")
    assert refused["agent"] == "Inner"
    if by != "as_tool":  # without our care it is not told under its call
        assert refused["parent_call"] == ToolCall.objects.get(name="dig").id
    assert statuses() == {"dig": "done", "pay": "blocked"}


def test_a_rule_asks_before_a_call_inside_an_agent_tool(ledger, tools):
    inner = Agent(name="Inner", tools=[tools("pay")], model=ScriptedModel([[call("pay", call_id="in-1")], SO]))
    rules(Row("Inner", "", "ask"))
    with working(team([call("dig", {"input": "go"}, call_id="o1")], SO, tools=[agent_tool(inner, "dig", "Dig.")])):
        say()
        over()
        assert ledger.lines == []
        approvals.decide(cast()["approver"], Approval.objects.get().id, "approve")
        (run,) = over()

    assert told("approval.requested")[0]["why"] == "the policy asks before every tool of Inner (set by system)"
    assert (run.status, ledger.lines) == ("done", ["pay"])


def test_a_tool_that_two_agents_share_is_denied_to_one(ledger, tools):
    shared = [tools("pay")]  # the same list, too
    other = Agent(name="Other", tools=shared, model=ScriptedModel([[call("pay", call_id="c3")], SO]))
    clerk = Agent(
        name="Clerk", tools=shared, handoffs=[other],
        model=ScriptedModel([[call("pay", call_id="c1")], [call("transfer_to_other", {}, call_id="c2")]]),
    )  # fmt: skip
    rules(Row("Clerk", "pay", "deny"), Row("", "transfer_to_other", "deny"))
    with working(Team(name="two", agents=[clerk, other], entry=["Clerk"])):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", ["pay"])
    assert told("policy.refused")[0]["agent"] == "Clerk"
    assert told("agent.handoff")[0]["to_agent"] == "Other"  # a handoff is no tool: no rule is about it


# A run's own restriction


@pytest.fixture
def restricted(monkeypatch):
    def restrict(restriction):
        monkeypatch.setattr(runner, "RunScope", partial(RunScope, restriction=restriction))

    return restrict


def test_a_call_outside_of_the_allowed_tools_never_dispatches(ledger, tools, restricted):
    restricted(Restriction(frozenset({"look"})))
    served = team(
        [call("look"), call("pay", call_id="c2")], SO, tools=[tools("look"), tools("pay", needs_approval=True)]
    )
    with working(served):
        say()
        (run,) = over()

    assert (run.status, ledger.lines) == ("done", ["look"])
    (refused,) = told("policy.refused")
    assert (refused["by"], refused["reason"]) == ("allowed_tools", "the request allows look only (allowed_tools)")
    assert "pay was not called: this request allows look only." in heard(served)


def test_an_empty_list_restricts_nothing_like_an_absent_one(ledger, tools, restricted):
    restricted(Restriction(frozenset()))
    with working(team([call("pay")], SO, tools=[tools("pay")])):
        say()
        over()

    assert ledger.lines == ["pay"]


def test_a_request_for_no_tool_calls_gets_none(ledger, tools, restricted):
    restricted(Restriction(none=True))
    with working(team([call("pay", "nothing")], SO, tools=[tools("pay")])):
        say()
        over()

    assert (ledger.lines, told("policy.refused")[0]["by"]) == ([], "tool_choice")


def test_what_happens_inside_an_allowed_call_is_part_of_it(ledger, tools, restricted):
    restricted(Restriction(frozenset({"dig"})))
    inner = Agent(name="Inner", tools=[tools("pay")], model=ScriptedModel([[call("pay", call_id="in-1")], SO]))
    with working(team([call("dig", {"input": "go"}, call_id="o1")], SO, tools=[agent_tool(inner, "dig", "Dig.")])):
        say()
        over()

    assert ledger.lines == ["pay"]


# Guarding


def gates(tool):
    return [guardrail for guardrail in tool.tool_input_guardrails if isinstance(guardrail, Gate)]


def test_tools_are_guarded_once_however_often_a_team_is_loaded(tools):
    served = team(SO, tools=[tools("pay")])
    before = served.agents[0].tools
    for _ in range(3):
        Roster(served, MODEL, None)
        guard_tools(served.agents[0])

    assert served.agents[0].tools is before
    assert len(gates(before[0])) == 1


def test_agents_that_are_reached_by_handoffs_and_as_tools_are_guarded_too(tools):
    inner, last = (Agent(name=name, tools=[tools("pay")]) for name in ("Inner", "Last"))
    middle = Agent(name="Middle", handoffs=[handoff(last)])
    clerk = Agent(name="Clerk", tools=[inner.as_tool("dig", "Dig.")], handoffs=[middle])
    last.handoffs = [clerk]  # a circle

    guard(clerk)

    assert [gate_of(agent.tools[0]).agent for agent in (clerk, inner, last)] == ["Clerk", "Inner", "Last"]


def test_a_guarded_tool_of_nobodys_run_is_as_its_code_says(ledger, tools):
    rules(DENY_PAY)
    clerk = Agent(
        name="Clerk", tools=[tools("pay"), tools("sign", needs_approval=True)],
        model=ScriptedModel([[call("pay"), call("sign", call_id="c2")]]),
    )  # fmt: skip
    guard(clerk)
    result = asyncio.run(Runner.run(clerk, "go"))

    assert (ledger.lines, [item.name for item in result.interruptions]) == (["pay"], ["sign"])
    assert [bool(tool.needs_approval) for tool in clerk.tools] == [False, True]
