"""The gate: which calls go, wait or are refused, through the real runner. What a tool did is in a file of its own."""

import asyncio
import json
import time

import pytest
from agents import function_tool
from agents.testing import ModelStep, assistant_message, function_call
from pydantic import BaseModel

from conversations.core.principals import SYSTEM
from conversations.models import Approval, Policy, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.policy.edit_policy import load_policies, set_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, team, working
from tests.support.cast import cast

pytestmark = pytest.mark.django_db(transaction=True)

SO = [assistant_message("So be it.")]
DENY_PAY = PolicyRule("", "pay", "deny", "destructive", "no money")


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


def tools_of(ledger):
    """Make tools that tell the ledger, each of its name."""

    def made(name, **more):
        async def enter(amount: int = 1) -> str:
            ledger.write(name)
            return f"{name} done"

        return function_tool(enter, name_override=name, strict_mode=False, **more)

    return made


@pytest.fixture
def tools(ledger):
    return tools_of(ledger)


def rules(*rows):
    load_policies(SYSTEM, rows)


def call(name, arguments=None, call_id="c1", **more):
    return function_call(name, arguments if arguments is not None else {"amount": 5}, call_id=call_id, **more)


def model_input(team, number=-1):
    """Return what the model was told before its last answer."""
    return json.dumps(team.agents[0].model.calls[number].input, default=str)


def statuses():
    return dict(ToolCall.objects.values_list("name", "status"))


# Deny


def test_a_denied_call_is_never_entered_and_the_run_goes_on(ledger, tools):
    rules(DENY_PAY)
    served = team([call("pay")], SO, tools=[tools("pay")])
    with working(served):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("done", [])
    (refused,) = event_bodies("policy.refused")
    identity = {"name": "pay", "qualified_name": "pay", "lookup_key": "bare:pay", "origin": "function"}
    assert identity.items() <= refused.items()
    assert (refused["agent"], refused["turn"], refused["tool_call_id"], refused["by"]) == ("Clerk", 1, "c1", "policy")
    assert (refused["args"], refused["args_raw"], refused["effect"]) == ({"amount": 5}, '{"amount":5}', "destructive")
    assert refused["reason"] == "policy denies pay by every agent (set by system): no money"
    assert refused["rule"] == {k: v for k, v in DENY_PAY._replace(updated_by="system")._asdict().items() if v}
    assert "pay was not called: the operators of this system do not allow it." in model_input(served)
    row = ToolCall.objects.get()
    assert (row.id, row.status, row.call_id) == (refused["tool_call"], "blocked", "c1")
    assert "tool_step" not in event_kinds()


def test_a_rule_may_deny_by_any_of_its_targets(ledger, tools):
    rules(DENY_PAY._replace(agent="Clerk"), PolicyRule("Clerk", "", "deny"), PolicyRule("Other", "look", "deny"))
    calls = [call("pay", call_id="c1"), call("look", call_id="c2")]
    with working(team(calls, SO, tools=[tools("look"), tools("pay")])):
        send_message()
        ended_runs()

    assert ledger.lines == []
    assert statuses() == {"pay": "blocked", "look": "blocked"}


def test_parallel_calls_are_each_judged(ledger, tools):
    rules(DENY_PAY)
    calls = [
        call("look", call_id="c1"),
        call("pay", call_id="c2"),
        call("look", call_id="c3"),
        call("pay", call_id="c4"),
    ]
    with working(team(calls, SO, tools=[tools("look"), tools("pay")])):
        send_message()
        ended_runs()

    assert ledger.lines == ["look", "look"]
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {
        "c1": "done", "c2": "blocked", "c3": "done", "c4": "blocked",
    }  # fmt: skip


def test_a_denied_call_is_refused_whatever_its_arguments_and_nobody_is_asked(ledger, tools):
    rules(DENY_PAY, DENY_PAY._replace(tool="sign"))
    odd = ["[1]", "nothing", "null", "", '{"amount":"many"}', '{"amount": NaN}']
    calls = [call(name, text, call_id=f"{name}{n}") for n, text in enumerate(odd) for name in ("pay", "sign")]
    with working(team(calls, SO, tools=[tools("pay"), tools("sign", needs_approval=True)])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines, statuses()) == ("done", [], {"pay": "blocked", "sign": "blocked"})
    assert sorted(refused["args_raw"] for refused in event_bodies("policy.refused")) == sorted(odd * 2)
    assert not Approval.objects.exists()


# Ask


def test_a_call_that_the_policy_asks_about_waits_and_says_why(ledger, tools):
    rules(PolicyRule("Clerk", "pay", "ask", "", "over 3"))
    with working(team([call("pay")], SO, tools=[tools("pay")])):
        send_message()
        ended_runs()
        assert ledger.lines == []
        decide.decide(cast()["approver"], Approval.objects.get().id, "approve")
        runs = ended_runs()

    assert (
        event_bodies("approval.requested")[0]["why"]
        == "policy requires approval for pay by Clerk (set by system): over 3"
    )
    assert (runs[0].status, ledger.lines, statuses()) == ("done", ["pay"], {"pay": "done"})


def test_no_rule_loosens_what_the_code_says(ledger, tools):
    rules(PolicyRule("Clerk", "pay", "allow", "read"), PolicyRule("", "", "allow", "read"))
    with working(team([call("pay")], SO, tools=[tools("pay", needs_approval=True)])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("waiting", [])
    (request,) = event_bodies("approval.requested")
    assert (request["why"], request["effect"]) == ("pay requires approval, as set in the team's code", "unsafe")


def test_the_codes_own_function_still_decides(ledger, tools):
    async def is_much(ctx, arguments, call_id):
        return arguments["amount"] > 3

    calls = [call("pay", {"amount": 1}), call("pay", {"amount": 5}, call_id="c2")]
    with working(team(calls, SO, tools=[tools("pay", needs_approval=is_much)])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("waiting", ["pay"])
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "waiting"}


def test_a_call_that_was_approved_is_refused_when_a_rule_denies_it_by_then(ledger, tools):
    with working(team([call("pay")], SO, tools=[tools("pay", needs_approval=True)])):
        send_message()
        ended_runs()
        rules(DENY_PAY)
        approval = Approval.objects.get()
        decide.decide(cast()["approver"], approval.id, "approve")
        (run,) = ended_runs()

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
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("done", ["pay", "pay"])
    calls = ToolCall.objects.values_list("call_id", "status")
    assert {call_id.removeprefix("of "): status for call_id, status in calls} == odd


def test_a_tool_with_a_model_as_its_parameter_does_not_wait(ledger):
    @function_tool
    async def pay(amount: Amount) -> str:
        ledger.write(str(amount.cents))
        return "paid"

    rules(PolicyRule("", "look", "deny"))
    with working(team([call("pay", {"amount": {"cents": "7"}})], SO, tools=[pay])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("done", ["7"])


def test_arguments_that_are_no_object_wait_where_the_policy_asks(ledger, tools):
    rules(PolicyRule("", "pay", "ask"))
    with working(team([call("pay", "[1]")], SO, tools=[tools("pay")])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ledger.lines) == ("waiting", [])


# A rule binds running runs


@pytest.mark.slow
def test_a_rule_that_another_process_sets_binds_the_next_call_within_a_second(ledger):
    made, entered, ruled = [], [], []

    @function_tool
    async def pay() -> str:
        entered.append(made[-1])
        if len(entered) == 3:  # past every action of this process: nothing tells the gate
            await asyncio.to_thread(_deny_behind)
            ruled.append(time.monotonic())
        return "paid"

    def pay_until_refused(approvals):
        made.append(time.monotonic())
        is_refused = "was not called" in json.dumps(approvals.input, default=str)
        return SO if is_refused else [call("pay", "{}", call_id=f"c{len(entered)}")]

    with working(team(*[ModelStep.respond(pay_until_refused)] * 500, tools=[pay], max_turns=500)):
        send_message()
        (run,) = ended_runs()

    assert (run.status, len(event_bodies("policy.refused"))) == ("done", 1)
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
        send_message()
        ended_runs()

    assert ledger.lines == ["pay"]
    assert ToolCall.objects.get(call_id="c3").status == "blocked"
