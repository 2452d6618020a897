"""Auto-approval rules for a tool that the team's code, not the policy, declares destructive."""

import json

import pytest

from conversations.core.errors import Invalid
from conversations.models import Agent, Approval, AutoApprovalRule
from conversations.runs.approvals import auto_approval, auto_approval_edit, auto_approval_view
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from tests.support import teamwork

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("town")]
BROAD = [{"any_agent": True}, {"is_exact": False, "arguments": {}}]


def declare(effect, agent="Coordinator"):
    row = Agent.objects.get(name=agent)
    tools = json.loads(row.tools) or json.loads(Agent.objects.get(name="Coordinator").tools)
    row.tools = json.dumps([tool | {"effect": effect} for tool in tools])
    row.save()


@pytest.mark.parametrize("scope", BROAD)
def test_no_rule_is_made_of_a_request_that_it_could_not_approve(people, scope):
    approval = teamwork.ask(people["operator"], effect="destructive")

    with pytest.raises(Invalid, match="requires a single agent and exact arguments"):
        auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, AutoApprovalScope(**scope))

    assert (Approval.objects.get().status, AutoApprovalRule.objects.count()) == ("pending", 0)


def test_a_rule_for_the_exact_call_is_made_and_applies(people):
    first = teamwork.ask(people["operator"], effect="destructive")
    auto_approval_edit.approve_and_make_rule(people["approver"], first.id, AutoApprovalScope())
    second = teamwork.ask(people["operator"], "again", effect="destructive")

    assert auto_approval.approve_waiting() == [second.id]


@pytest.mark.parametrize("scope", [{"any_agent": True, "arguments": {}}, {"is_exact": False, "arguments": {}}])
def test_no_rule_is_made_by_hand_for_calls_that_it_could_not_approve(people, scope):
    declare("destructive")
    broad = AutoApprovalScope(**{"agent": "Coordinator", "tool": "file_incident"} | scope)

    with pytest.raises(Invalid, match="requires a single agent and exact arguments"):
        auto_approval_edit.make_rule(people["approver"], broad)


def test_a_rule_by_hand_for_any_agent_may_be_for_those_whose_call_is_not_destructive(people):
    declare("unsafe", agent="Triage")
    declare("destructive")
    scope = AutoApprovalScope(is_exact=False, arguments={}, any_agent=True, tool="file_incident")

    rule = auto_approval_edit.make_rule(people["approver"], scope)

    assert [shown.idle for shown in auto_approval_view.shown([rule])] == [""]


def test_a_rule_that_the_code_made_too_broad_since_says_so(people):
    scope = AutoApprovalScope(is_exact=False, arguments={}, agent="Coordinator", tool="file_incident")
    rule = auto_approval_edit.make_rule(people["approver"], scope)
    assert [shown.idle for shown in auto_approval_view.shown([rule])] == [""]

    declare("destructive")

    idle = "The team's code declares these calls destructive: a rule requires a single agent and exact arguments"
    assert [shown.idle for shown in auto_approval_view.shown([rule])] == [idle]
