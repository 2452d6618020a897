"""A call made again: by its effect, by whom, with what; once, linked, told, and fed back to nobody."""

import json
from contextlib import nullcontext

import pytest
from agents.testing import assistant_message, function_call

from agents_app.teams.chat_tool import chat_send
from conversations.access.accounts import tokens
from conversations.access.accounts.edit_grants import give_grant
from conversations.conversation import control
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, Conversation, Run, SessionItem, Token, ToolCall, ToolSchema
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.runs.replay import request_replay
from conversations.runs.replay.eligibility import ReplayEligibility
from tests.events.test_projections import rows
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, team, working
from tests.support.cast import audit_summary, last_entry
from tests.support.replay_desk import ended
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_a_read_call_is_made_again_on_one_click_and_fed_back_to_nobody(people, desk):
    old = desk.recorded("look")["look"]
    memory = list(SessionItem.objects.values())

    run, new = desk.again(people["operator"], old)

    assert (run.kind, run.status, new.status, new.replay_of, new.run) == ("replay", "done", "done", old.id, run.id)
    assert len(desk.ran) == 2
    assert [step["output"]["nth"] for step in event_bodies("tool_step") if "output" in step] == [1, 2]
    assert event_kinds()[-6:] == ["replay.requested", "run.queued", "run.started", "tool_step", "tool_step", "run.done"]
    assert list(SessionItem.objects.values()) == memory
    assert audit_summary(last_entry()) == ("user:otto", "replay", f"call:{old.id}", "done")
    before = rows()
    list(rebuild())
    assert rows() == before


@pytest.mark.slow
def test_the_same_client_id_again_is_the_same_replay(people, desk):
    old = desk.recorded("send")["send"]
    form = {"reason": "the street was missed", "tool": "send"}

    with working(desk.team()):
        made = [request_replay.request_replay(people["admin"], old.id, client_id="once", **form) for _ in range(3)]
        ended(made[0].run)
        after = request_replay.request_replay(people["admin"], old.id, client_id="once", **form)
        other = request_replay.request_replay(people["admin"], old.id, client_id="twice", **form)
        ended(other.run)

    assert {*made, after} == {made[0]}
    assert other.call != made[0].call
    assert len(desk.ran) == 3
    with pytest.raises(Invalid, match="at most 100"):
        request_replay.request_replay(people["admin"], old.id, client_id="x" * 101, **form)


def test_an_event_of_a_strangers_is_no_replay(people, desk):
    old = desk.recorded("look")["look"]
    mark = request_replay._request_event_id(principals.user_principal("otto"), old.id, "known")
    claim = {"event": "replay.requested", "id": mark, "run_id": "r", "tool_call": "t"}
    log.append([unchecked("c", claim, principals.token_principal("robot"), bus_id=mark)])

    with working(desk.team()), pytest.raises(Conflict, match="is already used"):
        request_replay.request_replay(people["operator"], old.id, client_id="known")

    assert len(desk.ran) == 1


@pytest.mark.slow
def test_an_idempotent_call_goes_under_the_first_ones_key_also_when_a_replay_is_replayed(people, desk):
    old = desk.recorded("put")["put"]

    _, second = desk.again(people["operator"], old)
    _, third = desk.again(people["operator"], second)

    assert desk.ran == [f"put Elm {old.id}"] * 3
    assert (third.replay_of, second.replay_of) == (second.id, old.id)


@pytest.mark.slow
def test_an_idempotent_call_with_other_arguments_is_another_one(people, desk):
    old = desk.recorded("put")["put"]
    with working(desk.team()), pytest.raises(NotAllowed, match="may not replay calls of put: this requires a grant"):
        request_replay.request_replay(people["operator"], old.id, arguments={"street": "Oak"})
    assert audit_summary(last_entry()) == ("user:otto", "replay", f"call:{old.id}", "refused")

    _, new = desk.again(people["admin"], old, arguments={"street": "Oak"}, reason="a test", tool="put")

    assert desk.ran[1:] == [f"put Oak {new.id}"]


@pytest.mark.slow
def test_a_replay_of_a_replay_with_other_arguments_goes_under_the_key_of_that_replay(people, desk):
    old = desk.recorded("put")["put"]
    _, edited = desk.again(people["admin"], old, arguments={"street": "Oak"}, reason="a test", tool="put")

    desk.again(people["operator"], edited)

    assert desk.ran[1:] == [f"put Oak {edited.id}"] * 2


def test_a_replay_that_is_approved_with_other_arguments_goes_under_a_key_of_its_own(people, desk):
    old = desk.recorded("put")["put"]
    set_policy(people["admin"], PolicyRule("", "put", "ask"))
    run, new = desk.again(people["operator"], old)
    decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments={"street": "Oak"})
    with working(desk.team()):
        assert ended(run.id).status == "done"
    set_policy(people["admin"], PolicyRule("", "put", "allow"))

    desk.again(people["operator"], new)

    assert desk.ran[1:] == [f"put Oak {new.id}"] * 2


def test_a_client_id_is_not_for_other_arguments(people, desk):
    old = desk.recorded("put")["put"]
    form = {"reason": "a test", "tool": "put", "client_id": "once"}
    with working(desk.team()):
        first = request_replay.request_replay(people["admin"], old.id, arguments={"street": "Oak"}, **form)
        again = request_replay.request_replay(people["admin"], old.id, arguments='{"street": "Oak"}', **form)
        for arguments in ({"street": "Ash"}, "no JSON", None):
            with pytest.raises(Conflict, match="with other arguments") as refused:
                request_replay.request_replay(people["admin"], old.id, arguments=arguments, **form)
            assert refused.value.code == "id_reused"
        ended(first.run)

    assert again == first


def test_an_unsafe_call_takes_a_grant_a_reason_and_the_tools_name(people, desk):
    old, otto = desk.recorded("send")["send"], people["operator"]
    with working(desk.team()):
        with pytest.raises(NotAllowed, match="this requires a grant"):
            request_replay.request_replay(otto, old.id, reason="why", tool="send")
        give_grant(people["admin"], "otto", "replay", "send")
        with pytest.raises(Invalid, match="a reason is required") as no_reason:
            request_replay.request_replay(otto, old.id, reason="  ", tool="send")
        with pytest.raises(Invalid, match="must be the tool's name, send") as no_name:
            request_replay.request_replay(otto, old.id, reason="why", tool="Send")
        assert (no_reason.value.field, no_name.value.field) == ("reason", "tool")
        assert not Run.objects.filter(kind="replay").exists()
        new = request_replay.request_replay(otto, old.id, reason="why", tool="send")
        run = ended(new.run)

    assert (run.status, len(desk.ran)) == ("done", 2)
    assert (last_entry().reason, event_bodies("replay.requested")[0]["reason"]) == ("why", "why")


@pytest.mark.parametrize("role", ["viewer", "approver", "auditor", ""])
def test_who_may_not_replay_is_refused_and_it_is_in_the_audit_log(people, desk, role):
    old = desk.recorded("look")["look"]

    with working(desk.team()), pytest.raises(NotAllowed):
        request_replay.request_replay(people[role], old.id)

    assert audit_summary(last_entry())[1:] == ("replay", f"call:{old.id}", "refused")
    assert len(desk.ran) == 1


def test_a_call_that_is_not_there_or_that_an_import_still_writes_is_not_made(people, desk):
    staged = desk.recorded("look")["look"]
    Conversation.objects.update(is_staged=True)

    for call in ("nowhere", staged.id):
        with working(desk.team()), pytest.raises(NotFound):
            request_replay.request_replay(people["admin"], call)


def test_a_message_that_a_replay_sends_counts_its_hops_as_the_first_one_did(people):
    arguments = {"recipient": "chat:c", "content": "It is filed.", "conversation_id": None}
    sends = function_call("chat_send", arguments, call_id="c1")
    with working(team([sends], [assistant_message("Done.")], tools=[chat_send])):
        send_message(metadata={"hop": 3})
        ended_runs(1)
        new = request_replay.request_replay(people["admin"], ToolCall.objects.get().id, reason="why", tool="chat_send")
        ended(new.run)

    assert [body["metadata"]["hop"] for body in event_bodies("message") if body["sender"] == "agent:Clerk"] == [4, 4]


@pytest.mark.slow
def test_beside_a_paused_conversation_that_a_person_holds(people, desk):
    old = desk.recorded("look")["look"]
    control.take_over(people["operator"], "c")
    control.pause(people["operator"], "c")

    run, new = desk.again(people["operator"], old)

    assert (run.status, new.status) == ("done", "done")
    conversation = Conversation.objects.get(key="c")
    assert (conversation.state, conversation.owner) == ("paused", "user:otto")


@pytest.mark.slow
def test_a_second_person_decides_about_what_destroys_where_the_policy_asks(people, desk):
    old, ada = desk.recorded("burn")["burn"], people["admin"]
    set_policy(ada, PolicyRule("", "burn", "ask"))

    run, new = desk.again(ada, old, reason="why", tool="burn")
    approval = Approval.objects.get()

    assert (run.status, new.status, approval.tool_call, len(desk.ran)) == ("waiting", "waiting", new.id, 1)
    tokens.make_token(ada, "ada-script", "approver")
    for own in (ada, Token.objects.get()):
        with pytest.raises(NotAllowed, match="someone else has to decide"):
            decide.decide(own, approval.id, "approve")
    decide.decide(people["approver"], approval.id, "approve")
    with working(desk.team()):
        run = ended(run.id)
    assert (run.status, ToolCall.objects.get(id=new.id).status, len(desk.ran)) == ("done", "done", 2)
    assert run.state is None  # what it paused with
    before = rows()
    list(rebuild())
    assert rows() == before


@pytest.mark.slow
def test_a_rejected_replay_is_not_made(people, desk):
    old = desk.recorded("burn")["burn"]
    set_policy(people["admin"], PolicyRule("", "burn", "ask"))
    run, new = desk.again(people["admin"], old, reason="why", tool="burn")

    decide.decide(people["approver"], Approval.objects.get().id, "reject", message="No.")
    with working(desk.team()):
        run = ended(run.id)

    assert (run.status, ToolCall.objects.get(id=new.id).status, len(desk.ran)) == ("done", "rejected", 1)


@pytest.mark.slow
def test_an_approver_may_edit_a_replay_and_it_runs_with_that(people, desk):
    old = desk.recorded("send")["send"]
    set_policy(people["admin"], PolicyRule("", "send", "ask"))
    run, _new = desk.again(people["admin"], old, reason="why", tool="send")

    decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments={"street": "Oak"})
    with working(desk.team()):
        run = ended(run.id)

    assert run.status == "done"
    assert [line.split()[:2] for line in desk.ran] == [["send", "Elm"], ["send", "Oak"]]


def test_what_the_policy_denies_is_refused_before_anything_is_begun(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team()):
        set_policy(people["admin"], PolicyRule("", "look", "deny", note="closed"))
        with pytest.raises(NotAllowed, match="Policy denies"):
            request_replay.request_replay(people["operator"], old.id)

    assert not Run.objects.filter(kind="replay").exists()
    assert len(desk.ran) == 1


def test_a_replay_is_not_run_again_as_a_run(people, desk):
    old = desk.recorded("look")["look"]
    run, _ = desk.again(people["operator"], old)
    Run.objects.filter(id=run.id).update(status="failed")

    with pytest.raises(Conflict, match="from its page instead"):
        stop_and_rerun.run_again(people["operator"], run.id)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"street": 1}, "street: 1 is not of type 'string'"),
        ({"street": "Elm", "more": 1}, "more"),
        ({}, "'street' is a required property"),
        ("[1]", "must be a JSON object"),
        ('{"street": NaN}', "NaN is not valid JSON"),
        ({"street": "•••"}, "masks a secret"),
        ({"street": "sk-abcdefghijklmnop1234"}, "must not contain a key"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_nothing_is_begun(people, desk, given, wrong):
    old = desk.recorded("look")["look"]

    with working(desk.team()), pytest.raises(Invalid, match=wrong):
        request_replay.request_replay(people["operator"], old.id, arguments=given)

    assert not Run.objects.filter(kind="replay").exists()


@pytest.mark.parametrize(
    ("given", "is_edited"),
    [
        ({"b": "x", "a": 1}, False),
        ('{"b":"x",  "a": 1}', False),
        ({"a": True, "b": "x"}, True),
        ({"a": 1.0, "b": "x"}, True),
    ],
)
def test_arguments_are_others_when_they_are_other_json(given, is_edited):
    ToolSchema.objects.create(hash="5c" * 32, name="f", body='{"params_json_schema": {}}')

    tool = ReplayEligibility("Clerk", facts={"schema": "5c" * 32})
    _, _, arguments = request_replay.read_arguments({"args": {"a": 1, "b": "x"}}, given, tool)

    assert arguments is is_edited


@pytest.mark.parametrize(
    ("given", "origin", "recorded_schema", "is_refused"),
    [
        ({"a": 1, "c": 2}, "function", "5c" * 32, True),
        ({"a": 1, "c": 2}, "mcp", "5c" * 32, False),
        ({"a": 1, "b": "x"}, "function", "5c" * 32, False),  # as recorded: it drops what it dropped then
        (None, "function", "5c" * 32, False),
        (None, "function", "6d" * 32, True),
    ],
)
def test_names_that_a_function_would_drop_are_refused(given, origin, recorded_schema, is_refused):
    body = json.dumps({"params_json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}})
    ToolSchema.objects.create(hash="5c" * 32, name="f", body=body)
    recorded = {"args": {"a": 1, "b": "x"}, "schema": recorded_schema}
    tool = ReplayEligibility("Clerk", facts={"schema": "5c" * 32, "origin": origin})

    with pytest.raises(Invalid, match=r"argument [bc]: is unknown to the tool") if is_refused else nullcontext():
        request_replay.read_arguments(recorded, given, tool)
