"""Calls of external agents keep their ids when the id of their conversation is erased, in every later fold, too."""

import pytest

from conversations.conversation.fork import fork
from conversations.events.log import past_state
from conversations.events.log.rebuild import rebuild
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.models import Approval, Conversation, Event, ToolCall
from conversations.redaction import erase_id
from conversations.redaction.redact import redact
from conversations.runs.approvals import decide
from tests.redaction.test_erase_id import ID
from tests.runs.approvals.test_external_approvals import ask, log, people, step

__all__ = ["people"]
pytestmark = pytest.mark.django_db(transaction=True)


def calls(key):
    """Return `(id, status, approver)` of a conversation's calls, oldest first."""
    rows = ToolCall.objects.filter(conversation__key=key).order_by("called_seq")
    return list(rows.values_list("id", "status", "approver"))


def erased(by, key=ID):
    return next(done.conversation for done in erase_id.erase_id(by, key, "asked for") if "erased" in done.conversation)


def test_calls_keep_ids_states_and_approvers_however_often_they_are_folded(people):
    decide.decide(people["approver"], ask("t1", ID).id, "approve")
    log.append([step("t1", ID, status="success"), step("t2", ID, status="start")])
    before = calls(ID)
    assert [(status, approver) for _, status, approver in before] == [("done", "user:april"), ("executing", None)]

    key = erased(people["admin"])

    assert calls(key) == before
    list(rebuild())
    assert calls(key) == before
    assert Approval.objects.get().tool_call == before[0][0]
    redact(people["admin"], key, [1], "asked for")
    assert calls(key) == before
    assert RecordCheck(Settings()).events().why == ""


def test_calls_after_the_erasure_go_on_from_there(people):
    approval = ask("t1", ID)
    decide.decide(people["approver"], approval.id, "approve")
    key = erased(people["admin"])

    log.append([step("t1", key, status="success"), step("t2", key, status="start")])

    before = calls(key)
    assert [status for _, status, _ in before] == ["done", "executing"]
    list(rebuild())
    assert calls(key) == before
    row = Conversation.objects.get(key=key)
    assert past_state.state_at(row, row.head_seq).open_calls == 1


def test_many_calls_are_named_in_several_events(people, monkeypatch):
    monkeypatch.setattr(erase_id, "MAX_CALLS", 2)
    log.append([step(f"t{n}", ID, status="start") for n in range(5)])
    before = calls(ID)

    key = erased(people["admin"])

    assert calls(key) == before
    assert Event.objects.filter(conversation__key=key, kind="conversation.id_erased").count() == 3
    assert RecordCheck(Settings()).events().why == ""


def test_a_fork_does_not_take_ids_from_what_it_copied(people):
    log.append([step("t1", ID, status="start")])
    key = erased(people["admin"])
    copy = fork(people["admin"], key, Conversation.objects.get(key=key).head_seq).conversation

    log.append([step("t2", copy, status="start")])

    before = calls(copy)
    list(rebuild())
    assert calls(copy) == before
    assert not {id_ for id_, *_ in before} & {id_ for id_, *_ in calls(key)}
