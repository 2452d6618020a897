"""Questions of external agents: decided once, not when nobody waits any more, and the same after a rebuild."""

from __future__ import annotations

import re

import pytest

from conversations.access.accounts import tokens
from conversations.core import principals
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, Invalid, NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, AuditEntry, AutoApprovalRule, Conversation, Run, ToolCall
from conversations.runs import claims, stop_and_rerun
from conversations.runs.act_on_each import act_on_each
from conversations.runs.approvals import (
    auto_approval,
    auto_approval_edit,
    decide,
    external_approvals,
    inbox,
    overdue_requests,
)
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from tests.support.cast import cast, client_of
from tests.support.claiming import served_agents
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)
CODER = principals.token_principal("coder")


@pytest.fixture
def people():
    made = cast()
    tokens.make_token(SYSTEM, "coder", "agent", agent="Coder")
    return made


def step(call_id: str = "t1", key: str = "s", **fields):
    """Make a step of an external agent's tool call."""
    body = {"event": "tool_step", "agent": "Coder", "name": "Bash", "tool_call_id": call_id, "args_raw": "{}"}
    return unchecked(key, body | fields, CODER, bus_id=f"{call_id}-{fields.get('status')}")


def ask(call_id: str | None = "t1", key: str = "s", decisions=("approve", "reject"), why="it asks") -> Approval:
    """Ask about a call."""
    approval_request = external_approvals.ExternalRequest(
        key, "Coder", "Bash", call_id, {}, "{}", "claude-code", decisions, why
    )
    approval = external_approvals.request_approval(CODER, approval_request, step(call_id or "t1", key, status="start"))
    assert approval is not None
    return approval


def states(call_id: str = "t1") -> tuple[str, str, str]:
    """Return the states of the question about a call, of its call, and of its run."""
    (call,) = ToolCall.objects.filter(call_id=call_id)
    row = Approval.objects.get(tool_call=call.id)
    return row.status, call.status, Run.objects.get(id=row.run).status


def test_a_question_is_about_the_call_that_is_observed(people):
    approval = ask()

    assert states() == ("pending", "waiting", "waiting")
    assert ask().id == approval.id
    assert external_approvals.outcome(approval) is None


def test_no_rule_is_made_of_its_request(people):
    approval = ask()

    with pytest.raises(Invalid, match="no rule can match this call: its agent runs elsewhere"):
        auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, AutoApprovalScope())

    assert (states(), AutoApprovalRule.objects.count()) == (("pending", "waiting", "waiting"), 0)


@pytest.mark.parametrize(("decision", "call"), [("approve", "approved"), ("reject", "rejected")])
def test_a_decision_ends_the_waiting(people, decision, call):
    approval = ask()

    decide.decide(people["approver"], approval.id, decision, message="so")

    assert states() == ("decided", call, "done")
    assert external_approvals.outcome(approval) == external_approvals.ExternalOutcome(decision, "so")
    with pytest.raises(Conflict) as refused:
        decide.decide(people["admin"], approval.id, "approve")
    assert refused.value.code == "already_decided"
    assert external_approvals.withdraw([approval.id], "late") == []
    assert AuditEntry.objects.filter(verb="decide", target=f"approval:{approval.id}", outcome="done").count() == 1


def test_a_call_goes_on_where_its_question_was_withdrawn(people):
    approval = ask()

    assert external_approvals.withdraw([approval.id], "decided elsewhere") == [approval.id]
    log.append([step(status="success", output="ok")])

    assert states() == ("cancelled", "done", "cancelled")
    assert external_approvals.outcome(approval) == external_approvals.ExternalOutcome("")
    with pytest.raises(Conflict):
        decide.decide(people["approver"], approval.id, "approve")


def test_an_approved_call_ends_as_its_agent_tells(people):
    decide.decide(people["approver"], ask().id, "approve")

    log.append([step(status="success", output="ok")])

    assert states() == ("decided", "done", "done")
    assert ToolCall.objects.get().approver == "user:april"


@pytest.mark.parametrize("recorded", [{}, {"args_raw": None}])
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_question_asked_again_after_its_decision_is_the_same_one(people, decision, recorded):
    log.append([step(status="start", **recorded)])
    approval = ask()
    decide.decide(people["approver"], approval.id, decision, message="so")

    assert ask().id == approval.id
    assert external_approvals.outcome(ask()) == external_approvals.ExternalOutcome(decision, "so")
    assert ToolCall.objects.count() == 1


@pytest.mark.parametrize("further", ["begun", "other arguments"])
def test_a_further_call_of_a_rejected_id_is_asked_about_by_itself(people, further):
    approval = ask()
    decide.decide(people["approver"], approval.id, "reject")

    if further == "begun":
        log.append([step(status="start", id="again")._replace(event_id=None)])
        other = ask()
    else:
        approval_request = external_approvals.ExternalRequest(
            "s", "Coder", "Bash", "t1", {}, '{"a": 1}', "codex", ("reject",), "it asks"
        )
        begins = step(status="start", args_raw='{"a": 1}')._replace(event_id="another")
        made = external_approvals.request_approval(CODER, approval_request, begins)
        assert made is not None
        other = made

    assert (other.id != approval.id, other.status) == (True, "pending")


def test_nobody_decides_for_who_waits_no_more(people):
    approval = ask()
    Run.objects.filter(id=approval.run).update(lease_until=database_now() - 1)

    with pytest.raises(Conflict) as refused:
        decide.decide(people["approver"], approval.id, "approve")

    assert refused.value.code == "run_over"
    assert states() == ("pending", "waiting", "waiting")
    assert external_approvals.withdraw_abandoned() == [approval.id]
    assert states() == ("cancelled", "executing", "cancelled")


def test_who_waits_keeps_its_question_open(people):
    approval = ask()
    Run.objects.filter(id=approval.run).update(lease_until=database_now() - 1)

    external_approvals.renew(approval)

    assert external_approvals.withdraw_abandoned() == []


def test_who_comes_back_while_its_question_is_being_withdrawn_keeps_it(people, monkeypatch):
    approval = ask()
    Run.objects.filter(id=approval.run).update(lease_until=database_now() - 1)

    def act_after_renewal(rows, act):
        waiting = list(rows)
        external_approvals.renew(approval)
        return act_on_each(waiting, act)

    monkeypatch.setattr(external_approvals, "act_on_each", act_after_renewal)

    assert external_approvals.withdraw_abandoned() == []
    assert states() == ("pending", "waiting", "waiting")


def test_only_what_the_asker_takes_is_decided(people):
    approval = ask()

    for decision, more in (("respond", {"output": "x"}), ("edit", {"arguments": {}})):
        with pytest.raises(Invalid):
            decide.decide(people["approver"], approval.id, decision, **more)

    assert states()[0] == "pending"


def test_a_stranger_may_not_decide(people):
    approval = ask()

    for who in ("viewer", "operator", "auditor"):
        with pytest.raises(NotAllowed):
            decide.decide(people[who], approval.id, "approve")
    with pytest.raises(NotAllowed):
        decide.decide(CODER, approval.id, "approve")


def test_nothing_is_asked_in_a_conversation_of_somebody_else(people):
    log.append([step(key="theirs", status="start")._replace(principal="token:other")])
    approval_request = external_approvals.ExternalRequest(
        "theirs", "Coder", "Bash", "t1", {}, "{}", "codex", ("approve",), ""
    )

    assert external_approvals.request_approval(CODER, approval_request, step(key="theirs", status="start")) is None
    assert not Approval.objects.exists()


def test_no_worker_and_no_rule_takes_such_a_run(people):
    approval = ask()

    assert auto_approval.approve_waiting() == []
    decide.decide(people["approver"], approval.id, "approve")
    assert claims.claim("w", served_agents("town", "Coder"), at_most=9) == []
    with pytest.raises(Conflict):
        stop_and_rerun.run_again(people["operator"], approval.run)


def test_a_person_may_stop_the_waiting(people):
    approval = ask()

    stop_and_rerun.cancel_run(people["operator"], approval.run)

    assert states() == ("cancelled", "executing", "cancelled")
    assert external_approvals.outcome(approval) == external_approvals.ExternalOutcome("")


def test_a_deadline_of_the_policy_rejects(people, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"approval_s": 60.0, "approval_expiry": "reject"})
    approval = ask()
    Approval.objects.filter(id=approval.id).update(deadline=database_now() - 1)

    assert overdue_requests.handle_due() == [approval.id]

    assert states() == ("expired", "executing", "done")
    assert external_approvals.outcome(approval) == external_approvals.ExternalOutcome(
        "reject", "Nobody decided in time."
    )


@pytest.mark.parametrize("end", ["decided", "withdrawn", "open"])
def test_a_rebuild_changes_nothing(people, end):
    approval = ask()
    if end == "decided":
        decide.decide(people["approver"], approval.id, "reject")
    elif end == "withdrawn":
        external_approvals.withdraw([approval.id], "so")
    before = _rows()

    list(rebuild())

    assert _rows() == before


def _rows() -> list[object]:
    """Return every row that is a fold, without what is not."""
    folded = Run.objects.values("id", "status", "reason", "kind", "ended_seq", "input_seq", "queued_seq")
    return [
        list(ToolCall.objects.order_by("id").values()),
        list(Approval.objects.order_by("id").values()),
        list(folded.order_by("id")),
        list(Conversation.objects.values("key", "messages", "tool_calls", "errors", "head_hash")),
    ]


def test_the_questions_of_two_like_calls_are_about_one_each(people):
    log.append([step("a", status="start"), step("b", status="start")])

    first, second = ask(None), ask(None)

    assert first.tool_call != second.tool_call
    assert {call.call_id for call in ToolCall.objects.all()} == {"a", "b"}


def test_the_card_offers_what_the_asker_takes_and_decides(people):
    plain, editable = ask("t1"), ask("t2", decisions=("approve", "edit", "reject"))
    browser = client_of(people["approver"])

    cards = {row: browser.get(f"/approvals/{row.id}/").content.decode() for row in (plain, editable)}
    done = browser.post(f"/approvals/{plain.id}/", {"decide": "approve"})

    assert all('value="approve"' in card and 'value="reject"' in card for card in cards.values())
    assert not any("data-respond" in card or "data-always" in card for card in cards.values())
    assert ["data-json" in card for card in cards.values()] == [False, True]
    assert done.status_code in (200, 302, 303)
    assert states("t1") == ("decided", "approved", "done")


def test_its_conversation_says_that_it_waits(people):
    ask()

    heads = {
        role: client_of(people[role]).get("/conversations/s/").content.decode() for role in ("approver", "operator")
    }

    assert "Waiting for you" in heads["approver"]
    assert "Waiting for approval" in heads["operator"]
    assert not any(">Idle<" in head for head in heads.values())
    assert "assumed for external agents" in heads["approver"]
    assert "set in team code" not in heads["approver"]


def test_a_transcript_draws_the_question_in_the_block_of_its_call(people):
    approval = ask()

    page = client_of(people["approver"]).get("/conversations/s/").content.decode()

    assert page.count(f'data-key="{approval.id}"') == 1
    assert page.count(f'data-group="call:{approval.tool_call}"') == 1


def test_nothing_is_said_of_a_worker_while_it_waits(people):
    ask()
    browser = client_of(people["approver"])

    pages = [browser.get(f"/conversations/s/?view={view}").content.decode() for view in ("", "lanes", "timeline")]

    assert not any("worker" in page.partition("<main")[2] for page in pages)
    assert "its own program waits" in pages[0]
    assert "queued to answer" not in pages[0]


@pytest.mark.slow
def test_a_withdrawn_request_is_said_to_be_withdrawn_everywhere(people):
    approval = ask()
    external_approvals.withdraw([approval.id], "decided where the agent runs")
    browser = client_of(people["approver"])

    pages = {view: browser.get(f"/conversations/s/?view={view}").content.decode() for view in ("", "lanes", "timeline")}
    listed = browser.get("/approvals/?status=cancelled").content.decode()

    assert "no longer waits" in pages[""]
    assert ">withdrawn<" in pages[""]  # its run, in the panel
    assert "was stopped" not in pages[""] + pages["lanes"]
    assert re.search(r'data-state="rejected"[^\0]*approval request', pages["timeline"])
    assert "withdrawn; decided where the agent runs" in listed
    assert not any("run finished" in page or ">done<" in page for page in (*pages.values(), listed))


def test_an_agent_whose_request_was_decided_is_not_said_to_have_finished(people):
    decide.decide(people["approver"], ask().id, "approve")
    browser = client_of(people["approver"])

    for view in ("transcript", "lanes"):
        page = browser.get(f"/conversations/s/?view={view}").content.decode()
        assert "has its answer" in page
        assert "finished" not in page


def test_a_page_of_large_requests_ends_early_and_the_next_ones_have_the_rest(people, monkeypatch):
    monkeypatch.setattr(inbox, "MAX_BYTES", 1_000)
    ids = [ask(f"t{n}", why=f"it asks {n} " + "x" * 300 * n).id for n in range(6)]

    pages: list[list[str]] = []
    cursor: str | None = ""
    while cursor is not None:
        cards, cursor = inbox.page(limit=5, before=cursor)
        pages.append([card.row.id for card in cards])

    assert [id_ for page in pages for id_ in page] == ids[::-1]
    assert len(pages) > 2
    assert inbox.page(limit=6, is_oldest_first=True)[0][0].row.id == ids[0]
