"""Four eyes where a person asks an agent, and that agent another one: the person is behind both runs."""

import pytest

from conversations.core.errors import NotAllowed
from conversations.events import log
from conversations.models import Agent, Run
from conversations.runs import claims
from conversations.runs.approvals import decide, pending_counts
from conversations.runs.claims import Claim
from tests.support import held_run, teamwork
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


def pass_on(claimed: Claim, recipient: str) -> None:
    """Have a run send a message to another agent, and end, as `chat_send` of a worker does."""
    envelope = {"id": f"to-{recipient}", "sender": f"agent:{claimed.agent}", "recipient": f"agent:{recipient}"}
    envelope |= {"type": "message", "content": "Please file it."}
    key = claimed.conversation
    sent = unchecked(key, envelope, claimed.principal, topic=f"chat:{key}")
    log.append([sent._replace(run=claimed.run, fence_run=claimed.run, attempt=claimed.attempt)])
    held_run.finish(claimed, {"event": "run.done"})


@pytest.mark.parametrize("through", [["Coordinator"], ["Triage", "Coordinator"]])
def test_who_asked_the_agent_that_asked_does_not_decide(people, settings, through):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    teamwork.team()
    Agent.objects.update(is_entry=True)
    teamwork.say(people["admin"])
    for agent in through:
        pass_on(teamwork.claim(), agent)
    facts = {"event": "approval.requested", "approval_id": "ask", "tool_call": "t", **teamwork.ASKED}
    claims.suspend(teamwork.claim(), "approval", facts, **teamwork.SEALED)
    assert Run.objects.get(status="waiting").agent == "Coordinator"

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(people["admin"], "ask", "approve")

    assert pending_counts.excluded_approvers() == {"ask": {"user:ada"}}
    assert decide.decide(people["approver"], "ask", "approve").decided_by == "user:april"
