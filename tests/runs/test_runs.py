"""Runs: who starts one, who holds it, what a lost fence does, and what people decide."""

import pytest

from conversations.conversation import post_message
from conversations.core import principals
from conversations.core.errors import Conflict, Fenced, IdReused
from conversations.core.write_transaction import in_write_transaction
from conversations.events import commit_listeners, log
from conversations.models import Agent, Approval, AuditEntry, Conversation, Event, Run, ToolCall
from conversations.runs import claims, leases, stop_and_rerun
from conversations.runs.approvals import decide
from tests.support import held_run
from tests.support.claiming import served_agents
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
ROBOT = principals.token_principal("robot")


@pytest.fixture(autouse=True)
def town():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)
    Agent.objects.create(team="town", name="Insights")


def say(recipient="agent:Dialogue", key="c", sender="Rosa", principal=ROBOT, live=True, **more):
    payload = {"type": "message", "content": "hello", "sender": sender, "recipient": recipient, **more}
    event = unchecked(key, payload, principal, topic=f"chat:{key}")
    return log.append([event._replace(starts_no_run=not live)])


def kinds(key="c"):
    return list(Event.objects.filter(conversation__key=key).order_by("seq").values_list("kind", flat=True))


def claimed(**more):
    say(**more)
    (claim,) = claims.claim("host:1", served_agents("town", "Dialogue", "Insights"), at_most=1)
    return claim


def claimed_again(run):
    (claim,) = claims.claim("host:1", served_agents("town", "Dialogue", "Insights"), at_most=1)
    assert claim.run == run
    return claim


def step(status, call="call-1", **more):
    return {"event": "tool_step", "name": "file", "tool_call": call, "tool_call_id": call, "status": status, **more}


def test_a_message_to_an_agent_served_here_queues_a_run_in_its_transaction():
    say()

    run = Run.objects.get()
    assert (run.status, run.agent, run.input_seq, run.queued_seq) == ("queued", "Dialogue", 1, 2)
    assert kinds() == ["message", "run.queued"]


def test_a_run_that_a_message_queues_is_announced_with_the_message(django_capture_on_commit_callbacks):
    announced = []
    stop = commit_listeners.on_committed(announced.extend)

    with django_capture_on_commit_callbacks(execute=True):
        say()
    stop()

    assert [(event.seq, event.kind) for event in announced] == [(1, "message"), (2, "run.queued")]


def test_the_events_of_a_batch_are_announced_in_the_order_of_their_numbers(django_capture_on_commit_callbacks):
    """A hub that is given 1, 3, 2 sends frames that end at 2: the browser takes 3 for missing and subscribes again."""
    announced = []
    stop = commit_listeners.on_committed(announced.extend)
    message = {"type": "message", "sender": "Rosa", "recipient": "agent:Dialogue"}
    places = [(key, message | {"content": f"{key} {n}"}) for n in range(3) for key in ("c", "d")]

    with django_capture_on_commit_callbacks(execute=True):
        log.append([unchecked(key, payload, ROBOT, topic="chat:x") for key, payload in places])
    stop()

    for key in ("c", "d"):
        assert [event.seq for event in announced if event.conversation == key] == list(range(1, 7))


@pytest.mark.parametrize(
    "message",
    [
        {"recipient": "agent:Nobody"},
        {"recipient": "agent:Insights"},
        {"sender": "agent:Dialogue"},
        {"recipient": "chat:c"},
        {"live": False},
        {"principal": principals.import_principal("file")},
        {"type": "control"},
    ],
    ids=str,
)
def test_no_run_is_started_by(message):
    say(**message)

    assert not Run.objects.exists()


def test_a_conversation_with_a_handler_answers_what_is_said_to_it_but_not_what_agents_say():
    opened = {"event": "conversation.opened", "handler": "agent:Insights"}
    log.append([log.from_internal("c", opened, principals.SYSTEM)])

    say("chat:c", sender="agent:Triage")
    say("chat:c")

    assert [run.agent for run in Run.objects.all()] == ["Insights"]


def test_a_loop_of_agents_ends_at_twenty_hops():
    say(sender="agent:Other", metadata={"hop": 19})
    say(sender="agent:Other", metadata={"hop": 20})

    first, last = Run.objects.order_by("queued_seq")
    assert (first.status, last.status, last.reason) == ("queued", "failed", "hop_limit")


def test_one_run_of_a_conversation_at_a_time_and_all_are_answered_in_order():
    say()
    say(content="two")
    say(key="d")

    first = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=5)
    held_run.finish(first[0], {"event": "run.done"})
    second = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=5)

    assert [(c.conversation, c.input_seq) for c in first] == [("c", 1), ("d", 1)]
    inputs = [Event.objects.get(conversation__key=c.conversation, seq=c.input_seq) for c in second]
    assert [log.spoken_text(event.body) for event in inputs] == ["two"]


@pytest.mark.parametrize("at_most", [1, 5])
def test_the_first_of_a_conversation_goes_first_whatever_its_id(at_most):
    say()
    say(content="two")
    first, second = Run.objects.order_by("queued_seq")
    for run, id_ in ((first, "z-of-the-same-millisecond"), (second, "a-of-the-same-millisecond")):
        Run.objects.filter(id=run.id).update(id=id_)

    (claim,) = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=at_most)

    assert (claim.run, claim.input_seq) == ("z-of-the-same-millisecond", first.input_seq)


def test_a_run_of_a_host_is_taken_in_its_turn_and_stays_its_own():
    say()
    say(content="two")
    first, _ = Run.objects.order_by("queued_seq")
    Run.objects.filter(id=first.id).update(team="host")
    agents = served_agents("town", "Dialogue")

    (claim,) = claims.claim("host:1", agents._replace(hosts=["host"]), at_most=5)

    assert (claim.run, Run.objects.get(id=first.id).team) == (first.id, "host")


def test_a_paused_or_owned_conversation_queues():
    say()
    Conversation.objects.update(owner="user:ada")

    assert claims.claim("host:1", served_agents("town", "Dialogue"), at_most=1) == []


@pytest.mark.parametrize("held", [{"state": "paused"}, {"owner": "user:otto"}], ids=["paused", "taken over"])
def test_a_conversation_that_is_held_while_its_run_is_being_claimed_keeps_it_queued(monkeypatch, held):
    say()
    take = claims._take
    monkeypatch.setattr(
        claims, "_take", lambda *run, **how: (Conversation.objects.update(**held), take(*run, **how))[1]
    )

    assert claims.claim("host:1", served_agents("town", "Dialogue"), at_most=1) == []
    assert Run.objects.get().status == "queued"


def test_a_worker_that_lost_its_run_writes_nothing_more():
    claim = claimed()
    Run.objects.update(lease_until=1)
    assert leases.interrupt_expired() == [claim.run]
    before = kinds()

    with pytest.raises(Fenced):
        log.append([claim.event({"event": "token", "text": "x", "index": 0, "turn": 1})])
    with pytest.raises(Fenced):
        claims.begin_execution(claim, step("start"))
    with pytest.raises(Fenced):
        held_run.finish(claim, {"event": "run.done"})
    with pytest.raises(Fenced):
        claims.suspend(claim, "approval", state="s", state_mac="m", sdk="1")

    assert kinds() == before
    assert claims.renew([claim]) == {}


def test_an_earlier_attempt_of_a_run_that_is_running_again_writes_nothing():
    claim = claimed()
    Run.objects.update(attempt=claim.attempt + 1)
    before = kinds()

    with pytest.raises(Fenced, match="is no longer running in attempt 1"):
        log.append([claim.event({"event": "run.done"})])

    assert kinds() == before


def test_a_lease_begins_when_the_turn_to_write_has_come(monkeypatch):
    claim = claimed()
    monkeypatch.setattr(leases, "database_now", lambda: 20_000_000 if in_write_transaction() else 10_000_000)

    claims.renew([claim])

    assert Run.objects.get().lease_until == 20_000_000 + leases.RUN_LEASE_S * 1_000_000


def test_a_lease_is_renewed_by_nobody_but_the_attempt_that_holds_the_run():
    claim = claimed()
    Run.objects.update(attempt=claim.attempt + 1, lease_until=1)

    assert claims.renew([claim]) == {}
    assert Run.objects.get().lease_until == 1


def test_a_call_that_was_executing_when_its_worker_died_is_unknown_and_never_entered_again():
    claim = claimed()
    claims.begin_execution(claim, step("start"))
    Run.objects.update(lease_until=1)

    leases.interrupt_expired()

    assert ToolCall.objects.get().status == "unknown"
    assert Run.objects.get().status == "interrupted"
    assert leases.interrupt_expired() == []


def test_a_call_is_entered_once_in_whatever_attempt():
    claim = claimed()
    claims.begin_execution(claim, step("start"))

    with pytest.raises(Fenced):
        claims.begin_execution(claim, step("start"))

    assert ToolCall.objects.count() == 1


def ask_for_approval(claim, call="call-1"):
    ask = {"event": "approval.requested", "approval_id": f"approval-{call}", "tool_call": call, "name": "file"}
    claims.suspend(claim, "approval", {**ask, "tool_call_id": call, "args": {}}, state="s", state_mac="m", sdk="1")


def test_an_approval_is_decided_once_and_its_run_goes_on_with_the_next_attempt(people):
    claim = claimed()
    ask_for_approval(claim)
    assert ToolCall.objects.get().status == "waiting"

    decide.decide(people["approver"], "approval-call-1", "approve")
    with pytest.raises(Conflict, match="user:april already decided: approve"):
        decide.decide(people["admin"], "approval-call-1", "reject")

    (again,) = claims.claim("host:2", served_agents("town", "Dialogue"), at_most=1)
    assert (again.run, again.attempt, again.state) == (claim.run, 2, "s")
    assert ToolCall.objects.get().status == "approved"
    claims.begin_execution(again, step("start"))
    assert ToolCall.objects.get().status == "executing"
    assert [e.outcome for e in AuditEntry.objects.filter(verb="decide").order_by("seq")] == ["done", "refused"]


def test_a_rejected_call_is_over_and_its_run_goes_on(people):
    ask_for_approval(claimed())

    decide.decide(people["approver"], "approval-call-1", "reject", message="wrong street")

    assert (ToolCall.objects.get().status, Run.objects.get().status) == ("rejected", "queued")
    assert Approval.objects.get().decided_by == "user:april"


def test_a_run_is_run_again_while_no_newer_one_of_its_input_waits_or_is_done(people):
    old = claimed()
    held_run.finish(old, {"event": "run.failed", "reason": "error", "error": "ValueError: x"})
    second = stop_and_rerun.run_again(people["operator"], old.run)
    with pytest.raises(Conflict, match=f"user:otto already ran it again: run {second} is queued") as refused:
        stop_and_rerun.run_again(people["admin"], old.run)
    assert refused.value.code == "already_run_again"

    held_run.finish(claimed_again(second), {"event": "run.failed", "reason": "error", "error": "ValueError: x"})
    third = stop_and_rerun.run_again(people["admin"], old.run)
    held_run.finish(claimed_again(third), {"event": "run.done"})

    for run in (old.run, second):
        with pytest.raises(Conflict, match=f"user:ada already ran it again: run {third} is done"):
            stop_and_rerun.run_again(people["operator"], run)
    assert Run.objects.count() == 3


def test_a_run_is_stopped_where_it_is(people):
    claim = claimed()

    stop_and_rerun.cancel_run(people["operator"], claim.run)
    assert claims.renew([claim]) == {claim.run: "cancel"}

    say(key="d")
    queued = Run.objects.get(conversation__key="d")
    stop_and_rerun.cancel_run(people["operator"], queued.id)
    assert Run.objects.get(id=queued.id).status == "cancelled"
    assert kinds("d")[-1] == "run.cancelled"


def test_a_person_speaks_once_per_client_id(people):
    words = {"recipient": "agent:Dialogue", "content": "a pothole", "client_id": "one"}

    first = post_message.post(people["operator"], "new", title="Pothole", **words)
    again = post_message.post(people["operator"], "new", title="Pothole", **words)

    assert (first.seq, again.seq, again.is_new) == (2, 2, False)
    assert kinds("new") == ["conversation.opened", "message", "run.queued"]
    assert Conversation.objects.get(key="new").handler == "Dialogue"
    with pytest.raises(IdReused):
        post_message.post(people["operator"], "new", **(words | {"content": "other"}))
