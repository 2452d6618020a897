"""Auto-approval rules through the real worker: a call that would wait goes on at once, and the record says by whom."""

import json
from datetime import datetime

import pytest
from agents import Agent, ToolGuardrailFunctionOutput, function_tool, tool_input_guardrail
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from conversations.conversation import control
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, AuditEntry, AutoApprovalRule, Run, ToolCall
from conversations.runs.approvals import auto_approval
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from dashboard.pages.conversation_entries import entries_of
from tests.runs.approvals.test_auto_approval import rule
from tests.support.agents_running import Scripted, ended_runs, event_bodies, event_kinds, send_message, working
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)

SO = [assistant_message("Done so.")]


class Till:
    """A team whose `pay` asks a person; `paid` is what really ran."""

    def __init__(self):
        self.paid = []

    def tool(self):
        @tool_input_guardrail
        def no_gold(data):
            if json.loads(data.context.tool_arguments).get("amount") == 79:
                return ToolGuardrailFunctionOutput.reject_content("No gold.")
            return ToolGuardrailFunctionOutput.allow()

        @function_tool(needs_approval=True, tool_input_guardrails=[no_gold])
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        return pay

    def team(self, *steps, model=None):
        clerk = Agent(name="Clerk", model=model or ScriptedModel(steps), tools=[self.tool()])
        return Team(name="till", agents=[clerk], entry=["Clerk"])


def pay(amount=5, call_id="c1"):
    return function_call("pay", {"amount": amount}, call_id=call_id)


def always_pay(**more):
    return rule(lookup_key="bare:pay", tool="pay", **more)


def test_a_call_that_a_rule_is_about_runs_without_waiting_and_the_record_says_whose_rule(people):
    till, made = Till(), always_pay(arguments={"amount": 5}, agent="Clerk")
    with working(till.team([pay()], SO)):
        send_message()
        (run,) = ended_runs()

    assert (run.status, till.paid) == ("done", [5])
    request, decided = event_bodies("approval.requested")[0], event_bodies("approval.decided")[0]
    assert (request["args"], request["qualified_name"], request["why"]) == (
        {"amount": 5},
        "pay",
        "pay requires approval, as set in the team's code",
    )
    assert (decided["rule"], decided["rule_by"], decided["by"]) == (made.id, "user:april", "system")
    assert "run.waiting" not in event_kinds()
    steps = [kind for kind in event_kinds() if kind.startswith(("approval", "tool"))]
    assert steps == ["approval.requested", "approval.decided", "tool_step", "tool_step"]
    assert (Approval.objects.get().rule, ToolCall.objects.get().status) == (made.id, "done")
    assert AutoApprovalRule.objects.get().used == 1
    assert AuditEntry.objects.get(verb="decide").principal == "system"
    drawn = "".join(map(str, entries_of(log.newest_page("c"))))
    assert ">an auto-approval rule</a> by" in drawn
    assert f"/approvals/rules/?rule={made.id}" in drawn
    before = list(ToolCall.objects.values())
    list(rebuild())
    assert list(ToolCall.objects.values()) == before


def test_of_several_calls_each_finds_its_own_rule_and_the_rest_wait(people):
    till, _ = Till(), always_pay(arguments={"amount": 5}, is_exact=True)
    with working(till.team([pay(5, "c1"), pay(6, "c2"), pay(5, "c3")], SO)):
        send_message()
        (run,) = ended_runs()

    assert (run.status, till.paid) == ("waiting", [5, 5])
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "waiting", "c3": "done"}
    assert Approval.objects.get(status="pending").tool_call == ToolCall.objects.get(call_id="c2").id


@pytest.mark.slow
def test_n_uses_are_n_between_runs_and_the_next_call_waits(people):
    till, made = Till(), always_pay(uses=2)
    team = till.team(model=Scripted(lambda: [[pay()], SO]))
    with working(team):
        for n in range(4):
            send_message(f"hello {n}", key=f"c{n}")
        runs = ended_runs(4)

    assert sorted(run.status for run in runs) == ["done", "done", "waiting", "waiting"]
    assert till.paid == [5, 5]
    made.refresh_from_db()
    assert (made.used, Approval.objects.filter(rule=made.id).count()) == (2, 2)


def test_what_the_teams_guardrail_stops_uses_no_rule_up(people):
    till, made = Till(), always_pay()
    with working(till.team([pay(79)], SO)):
        send_message()
        (run,) = ended_runs()

    made.refresh_from_db()
    assert (run.status, till.paid, made.used) == ("done", [], 0)
    assert "approval.requested" not in event_kinds()


def test_what_the_policy_denies_stays_denied_and_what_it_has_a_person_decide_waits(people):
    till, _ = Till(), always_pay()
    edit_policy.set_policy(people["admin"], PolicyRule("", "pay", "deny"))
    with working(till.team([pay()], SO)):
        send_message()
        ended_runs()
    assert (till.paid, ToolCall.objects.get().status) == ([], "blocked")

    edit_policy.set_policy(people["admin"], PolicyRule("", "pay", "ask", no_always=True))
    with working(till.team([pay()], SO)):
        send_message("again", key="d")
        ended_runs(2)
    assert (till.paid, Approval.objects.get().status) == ([], "pending")


def test_while_the_conversation_is_held_nothing_is_approved_by_a_rule(people):
    till, held = Till(), []

    @function_tool
    def take() -> str:
        """Have a person take the conversation over in the middle of the turn."""
        control.take_over(people["operator"], "c")
        held.append(1)
        return "taken"

    clerk = Agent(name="Clerk", model=ScriptedModel([[function_call("take", {}, call_id="c0")], [pay()]]))
    clerk.tools = [take, till.tool()]
    always_pay()
    team = Team(name="till", agents=[clerk], entry=["Clerk"])
    with working(team):
        send_message()
        until(lambda: held and Run.objects.get().status == "waiting", what="the run to be suspended")

    assert till.paid == []
    assert not Approval.objects.exclude(rule=None).exists()


def test_a_nested_call_is_approved_by_a_rule(people):
    till, _ = Till(), always_pay(agent="Desk")
    desk = Agent(name="Desk", model=ScriptedModel([[pay(call_id="same")], SO]), tools=[till.tool()])
    outer = [function_call("ask_desk", {"input": "pay it"}, call_id="same")]
    clerk = Agent(name="Clerk", model=ScriptedModel([outer, SO]), tools=[agent_tool(desk, "ask_desk", "Ask.")])
    with working(Team(name="till", agents=[clerk], entry=["Clerk"])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, till.paid) == ("done", [5])
    (request,) = event_bodies("approval.requested")
    assert request["parent_call"] == ToolCall.objects.get(name="ask_desk").id
    assert dict(ToolCall.objects.values_list("name", "status")) == {"ask_desk": "done", "pay": "done"}


@pytest.mark.slow
def test_the_workers_round_approves_what_waits_and_the_run_goes_on(people, monkeypatch):
    monkeypatch.setattr("agents_app.worker.worker.RENEW_EVERY_S", 0.1)
    till = Till()
    with working(till.team([pay()], SO)):
        send_message()
        ended_runs()
        assert Approval.objects.get().status == "pending"
        always_pay()
        until(lambda: Run.objects.get().status == "done", what="the run to go on")

    assert till.paid == [5]
    assert auto_approval.approve_waiting() == []


def test_the_deadline_and_what_expiry_does_are_the_policys_and_stay_as_asked(people):
    edit_policy.set_policy(
        people["admin"], PolicyRule("", "pay", "ask", deadline_s=90, on_expiry="notify", notify="auditor")
    )
    with working(Till().team([pay()])):
        send_message()
        ended_runs()
    edit_policy.set_policy(people["admin"], PolicyRule("", "pay", "ask"))

    (request,) = event_bodies("approval.requested")
    row = Approval.objects.get()
    assert (request["on_expiry"], request["notify"]) == ("notify", "auditor")
    assert 85e6 < row.deadline - row.asked_at <= 90e6
    assert row.deadline // 1000 == round(datetime.fromisoformat(request["deadline"]).timestamp() * 1000)
    before = list(Approval.objects.values())
    list(rebuild())
    assert list(Approval.objects.values()) == before
