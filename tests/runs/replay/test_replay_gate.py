"""What stands before a replayed call in the worker, in the SDK's order; and a worker that dies does nothing twice."""

import asyncio
import json
from contextlib import contextmanager

import pytest
from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail

from conversations.core.errors import Fenced
from conversations.models import Approval, Event, Run, ToolCall
from conversations.runs import claims, leases, stop_and_rerun
from conversations.runs.approvals import decide
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.runs.replay import request_replay
from tests.support.agents_running import event_bodies, working
from tests.support.claiming import served_agents
from tests.support.live import until
from tests.support.replay_desk import ended

pytestmark = pytest.mark.django_db(transaction=True)


def rejecting(data):
    return ToolGuardrailFunctionOutput.reject_content("not on a Sunday")


def raising(data):
    return ToolGuardrailFunctionOutput.raise_exception()


def covering(data):
    return ToolGuardrailFunctionOutput.reject_content("covered")


async def off(ctx, agent):
    return False


STOPPED = {
    "is_enabled": ({"is_enabled": off}, "look is disabled (is_enabled)"),
    "guardrail": ({"tool_input_guardrails": [ToolInputGuardrail(rejecting)]}, "not on a Sunday"),
    "tripwire": ({"tool_input_guardrails": [ToolInputGuardrail(raising)]}, "the guardrail raising stopped it"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOPPED)
def test_what_stops_a_call_stops_its_replay_and_says_why(people, desk, name):
    settings, why = STOPPED[name]
    old = desk.recorded("look")["look"]

    run, new = desk.again(people["operator"], old, made=desk.team(tools=[desk.tool("look", **settings)]))

    assert (run.status, run.reason, new.status) == ("cancelled", f"not run: {why}", "blocked")
    assert event_bodies("policy.refused")[0]["reason"] == why
    assert len(desk.ran) == 1


def test_a_rule_that_came_between_the_click_and_the_call_stops_it(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team()) as worker, hold_claims(worker):
        new = request_replay.request_replay(people["operator"], old.id)
        set_policy(people["admin"], PolicyRule("", "look", "deny", note="closed"))
        worker._claiming.go()
        run = ended(new.run)

    assert (run.status, ToolCall.objects.get(id=new.call).status, len(desk.ran)) == ("cancelled", "blocked", 1)
    assert "closed" in event_bodies("policy.refused")[0]["reason"]


def test_what_was_asked_for_is_held_against_the_schema_once_more_before_the_call(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team()) as worker, hold_claims(worker):
        new = request_replay.request_replay(people["operator"], old.id)
        request = Event.objects.get(kind="replay.requested")
        request.body = json.dumps(json.loads(request.body) | {"args": {"street": 1}})
        request.save()
        worker._claiming.go()
        run = ended(new.run)

    assert (run.status, len(desk.ran)) == ("incompatible", 1)
    assert "the arguments do not match look: argument street: 1 is not of type 'string'" in run.reason


@contextmanager
def hold_claims(worker):
    """Have a worker claim nothing until `go`."""
    worker._claiming = _Held()
    worker._loop.call_soon_threadsafe(worker._news.set)  # it looks now, not seconds later
    until(lambda: worker._claiming.is_waited, what="the worker to stop claiming")
    try:
        yield
    finally:
        worker._claiming.go()


class _Held:
    """A lock that lets nobody in until told."""

    def __init__(self):
        self.is_waited = self._is_open = False

    async def __aenter__(self):
        self.is_waited = True
        while not self._is_open:  # noqa: ASYNC110  # another thread opens it
            await asyncio.sleep(0.01)

    async def __aexit__(self, *_):
        return None

    def go(self):
        self._is_open = True


def test_an_output_guardrail_puts_its_words_in_the_place_of_the_output(people, desk):
    old = desk.recorded("look")["look"]
    tool = desk.tool("look", tool_output_guardrails=[ToolOutputGuardrail(covering)])

    run, new = desk.again(people["operator"], old, made=desk.team(tools=[tool]))

    assert (run.status, new.status) == ("done", "done")
    assert event_bodies("tool_step")[-1]["output"] == "covered"


def test_an_output_guardrail_that_trips_makes_it_a_failed_call_that_ran(people, desk):
    old = desk.recorded("look")["look"]
    tool = desk.tool("look", tool_output_guardrails=[ToolOutputGuardrail(raising)])

    run, new = desk.again(people["operator"], old, made=desk.team(tools=[tool]))

    assert (run.status, new.status, len(desk.ran)) == ("failed", "failed", 2)
    assert (
        "the tool ran, but the output guardrail raising withholds its output" in event_bodies("tool_step")[-1]["error"]
    )


@pytest.mark.parametrize("is_raised", [True, False])
def test_the_time_limit_of_the_tool_holds(people, desk, is_raised):
    old = desk.recorded("look")["look"]
    slow = desk.slow("look", timeout=0.05, timeout_behavior="raise_exception" if is_raised else "error_as_result")

    run, new = desk.again(people["operator"], old, made=desk.team(tools=[slow]))

    assert (run.status, new.status) == ("failed" if is_raised else "done", "timeout")
    assert "0.05 seconds" in event_bodies("tool_step")[-1]["error"]


@pytest.mark.slow
def test_the_real_exception_is_in_the_record(people, desk):
    old = desk.recorded("look")["look"]

    run, new = desk.again(people["operator"], old, made=desk.team(tools=[desk.failing("look")]))

    assert (run.status, new.status) == ("done", "failed")
    assert event_bodies("tool_step")[-1]["error"] == "ValueError: no such street"


@pytest.mark.slow
def test_a_tool_that_asks_by_a_function_asks_before_a_replay_too(people, desk):
    async def elms(ctx, arguments, call_id):
        return arguments["street"] == "Elm"

    old = desk.recorded("look")["look"]
    made = [desk.team(tools=[desk.tool("look", needs_approval=elms)]) for _ in range(3)]

    run, new = desk.again(people["operator"], old, made=made[0])
    other, _ = desk.again(people["operator"], old, made=made[1], arguments={"street": "Oak"})
    assert (run.status, new.status, other.status) == ("waiting", "waiting", "done")
    decide.decide(people["approver"], Approval.objects.get().id, "approve")
    with working(made[2]):
        assert ended(run.id).status == "done"
    assert [line.split()[1] for line in desk.ran] == ["Elm", "Oak", "Elm"]


@pytest.mark.slow
def test_a_tool_that_changed_while_a_replay_waited_is_not_called(people, desk):
    old = desk.recorded("burn")["burn"]
    set_policy(people["admin"], PolicyRule("", "burn", "ask"))
    run, new = desk.again(people["admin"], old, reason="why", tool="burn")
    decide.decide(people["approver"], Approval.objects.get().id, "approve")

    with working(desk.team(tools=[desk.tool("burn", description_override="Do burn otherwise.")])):
        run = ended(run.id)

    assert (run.status, ToolCall.objects.get(id=new.id).status, len(desk.ran)) == ("incompatible", "blocked", 1)
    assert "has changed since the replay was requested" in run.reason


@pytest.mark.slow
def test_a_replay_whose_kept_state_is_not_what_was_sealed_is_not_made(people, desk):
    old = desk.recorded("burn")["burn"]
    set_policy(people["admin"], PolicyRule("", "burn", "ask"))
    run, _ = desk.again(people["admin"], old, reason="why", tool="burn")
    decide.decide(people["approver"], Approval.objects.get().id, "approve")
    Run.objects.filter(id=run.id).update(state_mac="0")

    with working(desk.team()):
        run = ended(run.id)

    assert (run.status, len(desk.ran)) == ("incompatible", 1)
    assert "does not match its signature" in run.reason


def begun(people, desk):
    """Queue a replay and take it as a worker that then dies; return the claim and what was asked."""
    old = desk.recorded("put")["put"]
    with working(desk.team()) as worker, hold_claims(worker):
        replay = request_replay.request_replay(people["operator"], old.id)
        (claim,) = claims.claim("host:dead", served_agents("test", "Clerk"), at_most=1)
    return claim, replay


def dies():
    Run.objects.filter(kind="replay").update(lease_until=1)
    assert len(leases.interrupt_expired()) == 1


@pytest.mark.slow
def test_of_a_worker_that_dies_in_the_call_nothing_is_done_again_and_the_doubt_is_told(people, desk):
    claim, replay = begun(people, desk)
    step = {"event": "tool_step", "name": "put", "tool_call": replay.call, "status": "start"}
    step["tool_call_id"] = event_bodies("replay.requested")[0]["tool_call_id"]
    claims.begin_execution(claim, step)

    dies()

    run, new = Run.objects.get(id=replay.run), ToolCall.objects.get(id=replay.call)
    assert (run.status, new.status, len(desk.ran)) == ("interrupted", "unknown", 1)
    with pytest.raises(Fenced):
        claims.begin_execution(claim, step)
    with working(desk.team()):
        pass
    assert len(desk.ran) == 1


def test_of_a_worker_that_dies_before_the_call_it_is_said_that_it_did_not_run(people, desk):
    _, replay = begun(people, desk)

    dies()

    assert Run.objects.get(id=replay.run).status == "interrupted"
    assert (ToolCall.objects.get(id=replay.call).status, len(desk.ran)) == ("blocked", 1)


def test_a_call_that_was_entered_is_not_entered_by_the_next_who_claims_it(people, desk):
    claim, replay = begun(people, desk)
    step = {"event": "tool_step", "name": "put", "tool_call": replay.call, "status": "start"}
    step["tool_call_id"] = event_bodies("replay.requested")[0]["tool_call_id"]
    claims.begin_execution(claim, step)
    claims.requeue(claim, "as if it had not begun")  # what no worker does

    with working(desk.team()):
        until(lambda: Run.objects.get(id=replay.run).attempt == 2, what="a second worker")
    Run.objects.filter(id=replay.run, status="running").update(lease_until=1)

    assert len(desk.ran) == 1


def test_a_replay_is_stopped_by_a_person_before_it_runs(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team()) as worker, hold_claims(worker):
        replay = request_replay.request_replay(people["operator"], old.id)
        stop_and_rerun.cancel_run(people["operator"], replay.run)

    assert (Run.objects.get(id=replay.run).status, len(desk.ran)) == ("cancelled", 1)
    assert ToolCall.objects.get(id=replay.call).status == "blocked"


def test_a_replay_is_stopped_by_a_person_while_it_runs(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team(tools=[desk.slow("look")])):
        replay = request_replay.request_replay(people["operator"], old.id)
        until(lambda: ToolCall.objects.filter(id=replay.call, status="executing").exists(), what="it to execute")
        stop_and_rerun.cancel_run(people["operator"], replay.run)
        Run.objects.filter(id=replay.run).update(stop="abort")
        run = ended(replay.run)

    assert (run.status, ToolCall.objects.get(id=replay.call).status) == ("cancelled", "unknown")


def test_a_worker_that_stops_before_the_call_leaves_the_replay_to_another(people, desk):
    reached = []

    async def wait_once(data):
        reached.append(data)
        if len(reached) == 1:
            await asyncio.Event().wait()
        return ToolGuardrailFunctionOutput.allow()

    old = desk.recorded("look")["look"]
    served = desk.team(tools=[desk.tool("look", tool_input_guardrails=[ToolInputGuardrail(wait_once)])])
    with working(served, stop_s=0.1):
        replay = request_replay.request_replay(people["operator"], old.id)
        until(lambda: reached, what="the guardrail to be reached")
    assert (Run.objects.get(id=replay.run).status, len(desk.ran)) == ("queued", 1)

    with working(served):
        run = ended(replay.run)

    assert (run.status, run.attempt, len(desk.ran)) == ("done", 2, 2)
    assert ToolCall.objects.get(id=replay.call).status == "done"


def test_a_worker_that_stops_during_the_call_says_so_and_names_no_person(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team(tools=[desk.slow("look")]), stop_s=0.1):
        replay = request_replay.request_replay(people["operator"], old.id)
        until(lambda: ToolCall.objects.filter(id=replay.call, status="executing").exists(), what="it to execute")

    run = Run.objects.get(id=replay.run)
    assert (run.status, run.reason) == ("cancelled", "the worker stopped before the run ended")
    assert ToolCall.objects.get(id=replay.call).status == "unknown"
