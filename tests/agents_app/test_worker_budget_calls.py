"""Which tool calls a budget counts: those that began, not those that wait or were refused."""

import pytest

from conversations.models import Run, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.budgets import evaluate
from conversations.runs.claims import Claim
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.runs.replay import request_replay
from tests.agents_app.test_worker_budgets import budget, question, spender, why, work
from tests.agents_app.test_worker_heard import clerks
from tests.runs.replay.test_replay_gate import hold_claims
from tests.support.agents_running import ended_runs, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_call_that_was_rejected_spends_nothing(people):
    budget(2, "calls")
    set_policy(people["admin"], PolicyRule("", "work", "ask"))
    with working(clerks(spender(calls=2), work)):
        send_message("hello")
        decide.decide(people["approver"], question().id, "reject")
        decide.decide(people["approver"], question(2).id, "reject")
        ended_runs(1)

    assert Run.objects.get().status == "done"
    assert not ToolCall.objects.filter(origin="budget").exists()


@pytest.mark.parametrize("scope", ["run", "conversation", "agent"])
def test_call_that_was_approved_spends_nothing_before_it_is_made(people, scope):
    budget(1, "calls", scope, agent="Clerk" if scope == "agent" else "")
    set_policy(people["admin"], PolicyRule("", "work", "ask"))
    with working(clerks(spender(calls=1), work)):
        send_message("hello")
        decide.decide(people["approver"], question().id, "approve")
        question(2)

    assert why(2).startswith("Budget reached: 1 of 1 tool call")
    assert ToolCall.objects.get(name="work").status == "done"


def test_replay_that_no_worker_has_begun_spends_nothing_of_the_agents_day(people):
    set_policy(people["admin"], PolicyRule("", "work", "allow", "read"))
    with working(clerks(spender(calls=1), work)) as worker:
        send_message("hello")
        ended_runs(1)
        budget(2, "calls", "agent", agent="Clerk")
        with hold_claims(worker):
            replay = request_replay.request_replay(
                people["admin"], ToolCall.objects.get().id, reason="why", tool="work"
            )
            other_run = Claim("another", 1, "other", "Clerk", "agent", 1, None, None, None)

            assert ToolCall.objects.get(id=replay.call).status == "called"
            assert evaluate.reached(other_run, "Clerk") is None
