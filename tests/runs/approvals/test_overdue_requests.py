"""Questions whose time is up: told or ended, once, by the worker's round; the run goes on without the call."""

import json

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import Team
from conversations.core.errors import Conflict
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, AuditEntry, Run, ToolCall
from conversations.runs.approvals import auto_approval, auto_approval_edit, decide, overdue_requests
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from tests.runs.approvals.test_decision_races import at_once
from tests.support import teamwork
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import cast
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)

PAST = "2026-01-01T00:00:00+00:00"


@pytest.fixture
def people():
    teamwork.team()
    return cast()


@pytest.fixture
def limits(settings):
    def set_to(**more):
        settings.CONFIG = settings.CONFIG.model_copy(update={"approval_s": 60.0, **more})

    return set_to


def overdue(person, key="flood"):
    approval = teamwork.ask(person, key=key)
    Approval.objects.filter(id=approval.id).update(asked_at=approval.asked_at - 61_000_000)
    return approval


def test_without_a_limit_nothing_expires(people):
    overdue(people["operator"])

    assert overdue_requests.handle_due() == []


def test_a_question_whose_time_is_not_up_stays(people, limits):
    limits(approval_expiry="reject")
    teamwork.ask(people["operator"])

    assert overdue_requests.handle_due() == []


@pytest.mark.parametrize(("then", "to"), [("wait", "approver"), ("notify", "auditor")])
def test_it_is_told_once_and_stays_open(people, limits, then, to):
    limits(approval_expiry=then, approval_role="auditor")
    approval = overdue(people["operator"])

    done = [overdue_requests.handle_due(), overdue_requests.handle_due()]

    assert done == [[approval.id], []]
    (event,) = event_bodies("approval.escalated", "flood")
    assert (event["to"], event["reason"]) == (to, "no decision within 1 min")
    assert AuditEntry.objects.filter(verb="escalate", principal="system").count() == 1
    assert decide.decide(people["approver"], approval.id, "approve").status == "decided"


def test_an_escalated_request_can_be_decided_after_the_settings_have_changed(people, limits):
    limits(approval_expiry="notify", approval_role="auditor")
    approval = overdue(people["operator"])
    assert overdue_requests.handle_due() == [approval.id]

    limits(approval_expiry="reject")

    assert overdue_requests.handle_due() == []
    assert decide.decide(people["approver"], approval.id, "approve").status == "decided"


def test_it_is_ended_once_however_many_look_and_who_decides_then_is_told(people, limits):
    limits(approval_expiry="reject")
    approval = overdue(people["operator"])

    outcomes, _ = at_once(*[overdue_requests.handle_due] * 4)

    assert sorted(outcomes) == [[], [], [], [approval.id]]
    assert len(event_bodies("approval.expired", "flood")) == 1
    assert AuditEntry.objects.filter(verb="expire").count() == 1
    assert (Run.objects.get().status, ToolCall.objects.get().status) == ("queued", "blocked")
    with pytest.raises(Conflict, match="the approval request expired at"):
        decide.decide(people["approver"], approval.id, "approve")


def test_after_the_time_at_which_it_ends_nobody_decides_although_no_worker_has_ended_it(people, limits):
    rule = AutoApprovalScope(is_exact=False, arguments={}, any_agent=True, tool="file_incident")
    auto_approval_edit.make_rule(people["approver"], rule)
    own_deadline = teamwork.ask(people["operator"], key="own", deadline=PAST, on_expiry="reject")
    limits(approval_expiry="reject")
    overdue_approvals = [own_deadline, overdue(people["operator"], key="by the settings")]

    for approval in overdue_approvals:
        with pytest.raises(Conflict, match="the approval request expired at") as refused:
            decide.decide(people["approver"], approval.id, "approve")
        assert refused.value.code == "expired"
    assert auto_approval.approve_waiting() == []

    assert overdue_requests.handle_due() == sorted(approval.id for approval in overdue_approvals)


def test_the_worker_ends_it_and_the_agent_goes_on_without_the_call(limits):
    limits(approval_s=0.2, approval_expiry="reject")
    filed = []

    def team(*steps):
        @function_tool(needs_approval=True)
        def file() -> str:
            """File."""
            filed.append(1)
            return "filed"

        return Team(name="t", agents=[Agent(name="Clerk", model=ScriptedModel(steps), tools=[file])], entry=["Clerk"])

    with working(team([function_call("file", {}, call_id="c1")])):
        send_message()
        ended_runs()
    until(lambda: overdue_requests.handle_due() or Approval.objects.get().status == "expired", what="its time to be up")
    again = team([assistant_message("So be it.")])
    with working(again):
        (run,) = ended_runs()

    assert (run.status, filed, ToolCall.objects.get().status) == ("done", [], "blocked")
    assert "Nobody decided in time" in json.dumps(again.agents[0].model.first_call.input, default=str)
    (request,) = event_bodies("approval.requested")
    assert request["deadline"]
    assert request["on_expiry"] == "reject"
    before = list(Approval.objects.values())
    list(rebuild())
    assert list(Approval.objects.values()) == before
