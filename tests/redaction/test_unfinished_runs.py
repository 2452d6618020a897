"""Nothing that a run has yet to finish with is redacted, whether it works, waits, or is queued to go on."""

from contextlib import nullcontext

import pytest

from conversations.conversation import control
from conversations.core.errors import Conflict
from conversations.core.principals import SYSTEM
from conversations.models import Event, Run
from conversations.redaction import erase_id, expiry, redact
from conversations.runs.approvals import decide
from tests.agents_app.test_worker_approvals import SO, Office, waiting_approval
from tests.support.agents_running import ended_runs, working

pytestmark = pytest.mark.django_db(transaction=True)

REDACTIONS = {
    "an event": lambda key, seq: redact.redact(SYSTEM, key, [seq], "asked for"),
    "the id": lambda key, seq: erase_id.erase_id(SYSTEM, key, "asked for"),
    "what is too old": lambda key, seq: expiry.expire(SYSTEM, expiry.RetentionScope(1 << 60), "old", lambda *_: None),
}


@pytest.mark.parametrize("what", REDACTIONS)
def test_a_decided_run_that_is_queued_to_go_on_keeps_its_state_and_its_decision(people, what):
    office = Office()
    approval = waiting_approval(office)
    key = approval.conversation.key
    control.pause(SYSTEM, key)
    decide.decide(people["approver"], approval.id, "edit", arguments={"street": "Elm Street"})
    decided = Event.objects.get(conversation__key=key, kind="approval.decided")

    is_skipped = what == "what is too old"  # the daily job goes on with the others
    with nullcontext() if is_skipped else pytest.raises(Conflict, match="Clerk is active in conversation"):
        REDACTIONS[what](key, decided.seq)

    assert Event.objects.get(pk=decided.pk).erased_by is None
    assert Run.objects.get().state
    control.resume(SYSTEM, key)
    with working(office.team(SO)):
        (run,) = ended_runs()
    assert (run.status, run.attempt, office.filed) == ("done", 2, [1])
