"""A run that ends while it waits withdraws its approval requests in the same transaction; a later decision fails."""

import json

import pytest

from conversations.access.accounts import tokens
from conversations.core.errors import Conflict
from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, Run, ToolCall
from conversations.realtime.live_renderer import LiveRenderer
from conversations.runs import claims, stop_and_rerun
from conversations.runs.approvals import decide, pending_counts
from dashboard.pages.conversation_entries import entries_of
from tests.support import teamwork
from tests.support.agents_running import event_bodies, event_kinds
from tests.support.cast import client_of
from tests.support.visits import words_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]
ENDS = {
    "run.cancelled": "the run was stopped",
    "run.failed": "the run failed",
    "run.interrupted": "the run was interrupted",
    "run.incompatible": "the run could not resume",
}


def ask_twice(by):
    """A run that waits for two decisions, inside a call that is executing."""
    teamwork.say(by)
    claimed = teamwork.claim()
    log.append([claimed.event({"event": "tool_step", "name": "ask_desk", "tool_call": "outer", "status": "start"})])
    approval_request = {"event": "approval.requested", **teamwork.ASKED}
    both = ({**approval_request, "approval_id": f"ask-{n}", "tool_call": f"call-{n}"} for n in (1, 2))
    claims.suspend(claimed, "approval", *both, **teamwork.SEALED)
    return claimed.run


def block(part):
    (entry,) = [str(row) for row in entries_of(log.newest_page("flood")) if part in row]
    return entry


def statuses():
    return dict(ToolCall.objects.values_list("id", "status"))


def test_a_run_stopped_while_it_waits_withdraws_its_question(team):
    approval = teamwork.ask(team["operator"])

    stop_and_rerun.cancel_run(team["operator"], approval.run)

    approval.refresh_from_db()
    assert (approval.status, approval.decision, approval.decided_by) == ("cancelled", None, "user:otto")
    assert statuses() == {approval.tool_call: "blocked"}
    assert event_kinds("flood")[-2:] == ["run.cancelled", "approval.cancelled"]
    assert pending_counts.pending_counts()["waiting"] == 0


def test_a_question_whose_run_a_token_stopped_names_the_token(team):
    tokens.make_token(SYSTEM, "night-desk", "operator")
    approval = teamwork.ask(team["operator"])

    stop_and_rerun.cancel_run(token_principal("night-desk"), approval.run)

    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("cancelled", "token:night-desk")
    with pytest.raises(Conflict, match="withdrawn: token:night-desk ended its run"):
        decide.decide(team["approver"], approval.id, "approve")
    assert "night-desk" in words_of(block(f'data-group="call:{approval.tool_call}"'))
    list(rebuild())
    assert Approval.objects.get().decided_by == "token:night-desk"


def test_a_question_whose_run_does_not_wait_is_open_nowhere(team):
    approval = teamwork.ask(team["operator"])
    assert (list(Approval.objects.open()), pending_counts.pending_counts()["waiting"]) == ([approval], 1)

    Run.objects.filter(id=approval.run).update(status="running")

    assert (list(Approval.objects.open()), pending_counts.pending_counts()["waiting"]) == ([], 0)


@pytest.mark.parametrize(("kind", "why"), ENDS.items())
def test_every_bad_end_withdraws_what_is_open_and_says_why(team, kind, why):
    run = ask_twice(team["operator"])
    decide.decide(team["approver"], "ask-1", "approve")
    end = {"event": kind, "run_id": run, "agent": "Dialogue", "reason": "because", "calls": ["outer"]}

    log.append([log.from_internal("flood", end, SYSTEM)])

    assert dict(Approval.objects.values_list("id", "status")) == {"ask-1": "decided", "ask-2": "cancelled"}
    assert statuses() == {"outer": "unknown", "call-1": "blocked", "call-2": "blocked"}
    assert [closed["reason"] for closed in event_bodies("approval.cancelled", "flood")] == [why]
    assert "It did not run" in words_of(block('data-group="call:call-1"'))
    assert f"Not decided: {why}." in words_of(block('data-group="call:call-2"'))


def test_a_stopped_run_leaves_the_call_around_the_question_in_doubt(team):
    run = ask_twice(team["operator"])

    stop_and_rerun.cancel_run(team["operator"], run)

    assert statuses() == {"outer": "unknown", "call-1": "blocked", "call-2": "blocked"}
    assert event_bodies("run.cancelled", "flood")[0]["calls"] == ["outer"]
    assert "1 tool call may or may not have had an effect" in words_of(block("run.cancelled"))


def test_a_run_that_was_approved_and_is_stopped_before_it_goes_on_never_runs_the_call(team):
    approval = teamwork.ask(team["operator"])
    decide.decide(team["approver"], approval.id, "approve")

    stop_and_rerun.cancel_run(team["operator"], approval.run)

    approval.refresh_from_db()
    assert (approval.status, statuses()) == ("decided", {approval.tool_call: "blocked"})
    assert "It did not run: its run was stopped before." in words_of(block("file_incident"))


def test_a_decision_after_it_is_told_what_happened(team):
    approval = teamwork.ask(team["operator"])
    stop_and_rerun.cancel_run(team["operator"], approval.run)

    with pytest.raises(Conflict, match="the approval request was withdrawn: user:otto ended its run at"):
        decide.decide(team["approver"], approval.id, "approve")
    answer = client_of(team["approver"]).post(
        f"/api/v1/approvals/{approval.id}/decision", {"decision": "approve"}, "application/json"
    )

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, "cancelled")
    assert (error["status"], error["by"]) == ("cancelled", "user:otto")
    assert Run.objects.get().status == "cancelled"
    assert statuses() == {approval.tool_call: "blocked"}


def test_the_question_vanishes_from_an_open_page_with_the_events_that_end_it(team):
    approval = teamwork.ask(team["operator"])
    assert f'<decision-form data-key="{approval.id}"' in block("file_incident")
    head, artist = log.head("flood"), LiveRenderer("flood")

    stop_and_rerun.cancel_run(team["operator"], approval.run)
    frames = [json.loads(text) for _, text in artist.draw(log.read_after("flood", head))]

    (fresh,) = [frame["html"] for frame in frames if frame.get("group") == f"call:{approval.tool_call}"]
    assert "decision-form" not in fresh
    assert "withdrawn Not decided: the run was stopped by otto ." in words_of(fresh)
    assert fresh == block("file_incident")


def test_calls_that_a_stopped_run_leaves_in_doubt_change_on_an_open_page(team):
    run = ask_twice(team["operator"])
    head, artist = log.head("flood"), LiveRenderer("flood")

    stop_and_rerun.cancel_run(team["operator"], run)
    frames = [json.loads(text) for _, text in artist.draw(log.read_after("flood", head))]

    changed = {change["group"]: change["html"] for frame in frames for change in frame.get("also", ())}
    assert "its run was stopped: it may or may not have taken effect" in words_of(changed["call:outer"])


def test_rebuild_changes_nothing_of_it(team):
    run = ask_twice(team["operator"])
    decide.decide(team["approver"], "ask-1", "reject")
    stop_and_rerun.cancel_run(team["operator"], run)
    before = [list(model.objects.order_by("id").values()) for model in (Run, Approval, ToolCall)]

    list(rebuild())

    assert [list(model.objects.order_by("id").values()) for model in (Run, Approval, ToolCall)] == before


def test_a_question_whose_time_was_up_is_over_and_its_call_did_not_run(team):
    approval = teamwork.ask(team["operator"])
    facts = {"run_id": approval.run, "approval_id": approval.id, "tool_call": approval.tool_call}

    log.append(
        [log.from_internal("flood", {"event": "approval.expired", **facts, "reason": "after 15 minutes"}, SYSTEM)]
    )

    approval.refresh_from_db()
    assert (approval.status, statuses()) == ("expired", {approval.tool_call: "blocked"})
    assert "expired Not decided: after 15 minutes." in words_of(block("file_incident"))
    with pytest.raises(Conflict, match="the approval request expired at") as refused:
        decide.decide(team["approver"], approval.id, "approve")
    assert refused.value.code == "expired"


def test_an_escalated_question_stays_open(team):
    approval = teamwork.ask(team["operator"])
    facts = {"run_id": approval.run, "approval_id": approval.id, "tool_call": approval.tool_call}

    log.append([log.from_internal("flood", {"event": "approval.escalated", **facts, "to": "admins"}, SYSTEM)])

    assert Approval.objects.get().status == "pending"
    assert "is still waiting for a decision; escalated to admins" in words_of(block("approval.escalated"))


def test_a_claim_from_outside_withdraws_nothing(team):
    approval = teamwork.ask(team["operator"])
    facts = {"run_id": approval.run, "approval_id": approval.id, "tool_call": approval.tool_call}

    for kind in ("approval.cancelled", "approval.expired", "run.cancelled"):
        teamwork.claim_from_outside("flood", {"event": kind, **facts, "reason": "so there"})

    assert Approval.objects.get().status == "pending"
    assert statuses() == {approval.tool_call: "waiting"}
