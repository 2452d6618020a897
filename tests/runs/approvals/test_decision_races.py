"""Many decide the same question at once: one wins, the others are told who, and the record has it once."""

import threading
import time

import pytest
from django.db import connections

from conversations.core.errors import Conflict, NotAllowed, NotFound
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Approval, AuditEntry, Event, Role, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from tests.support import teamwork
from tests.support.shares import amount_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("town")]

AT_ONCE = 8
DECISIONS = ({"decision": "approve"}, {"decision": "reject"}, {"decision": "respond", "output": "x"})


def at_once(*deeds):
    """Do these at the same moment, each in a thread with a connection of its own; return what came of each, and the
    longest time that one took, in seconds."""
    outcomes, took = [None] * len(deeds), [0.0] * len(deeds)
    begin = threading.Barrier(len(deeds))

    def work(n, deed):
        try:
            connections["default"].ensure_connection()
            begin.wait(60)
            began = time.monotonic()
            outcomes[n] = deed()
        except (Conflict, NotAllowed, NotFound) as error:
            outcomes[n] = error
        finally:
            took[n] = time.monotonic() - began
            connections.close_all()

    threads = [threading.Thread(target=work, args=(n, deed)) for n, deed in enumerate(deeds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes, max(took)


def deciding(by, approval, n):
    return lambda: decide.decide(by, approval, **DECISIONS[n % len(DECISIONS)])


def race(people, rounds):
    for n in range(rounds):
        approval = teamwork.ask(people["operator"], key=f"c{n}")
        both = people["approver"], people["admin"]

        outcomes, _ = at_once(*(deciding(both[i % 2], approval.id, i) for i in range(AT_ONCE)))

        (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Approval)]
        losers = [outcome for outcome in outcomes if outcome is not winner]
        assert {loser.code for loser in losers} == {"already_decided"}
        words = f"{winner.decided_by} already decided: {winner.decision}, at "
        assert all(loser.message.startswith(words) for loser in losers)
        decided = AuditEntry.objects.filter(verb="decide", target=f"approval:{approval.id}")
        assert (decided.filter(outcome="done").count(), decided.filter(outcome="refused").count()) == (1, AT_ONCE - 1)
        assert Event.objects.filter(conversation=approval.conversation, kind="approval.decided").count() == 1
        assert Run.objects.get(id=approval.run).status == "queued"


@pytest.mark.slow
def test_of_many_decisions_at_once_one_wins_and_the_others_are_told_who(people):
    race(people, 6)


@pytest.mark.faults
@pytest.mark.timeout(0)
def test_of_many_decisions_at_once_one_wins_ten_thousand_times(people):
    race(people, amount_of(10_000))


def stopping(people, approval):
    stop_and_rerun.cancel_run(people["operator"], approval.run)


def expiring(people, approval):
    facts = {"run_id": approval.run, "approval_id": approval.id, "tool_call": approval.tool_call}
    log.append([log.from_internal(approval.conversation.key, {"event": "approval.expired", **facts}, SYSTEM)])


def losing_the_right(people, approval):
    Role.objects.filter(user=people["approver"]).delete()


@pytest.mark.parametrize("deed", [stopping, losing_the_right])
def test_a_decision_and_what_ends_its_chance_have_one_outcome(people, deed):
    for n in range(5):
        Role.objects.get_or_create(user=people["approver"], name="approver")
        approval = teamwork.ask(people["operator"], key=f"c{n}")

        (decided, _), _ = at_once(
            lambda request=approval: decide.decide(people["approver"], request.id, "approve"),
            lambda request=approval: deed(people, request),
        )

        approval.refresh_from_db()
        call = ToolCall.objects.get(id=approval.tool_call)
        if isinstance(decided, Approval):
            assert approval.status == "decided"
        elif deed is stopping:
            assert (decided.code, approval.status, call.status) == ("cancelled", "cancelled", "blocked")
        else:
            assert (decided.code, approval.status) == ("not_allowed", "pending")
        if deed is stopping:
            assert (Run.objects.get(id=approval.run).status, call.status) == ("cancelled", "blocked")


@pytest.mark.parametrize("deed", [stopping, expiring, losing_the_right])
def test_after_it_is_over_nothing_is_decided_and_the_call_is_never_approved(people, deed):
    approval = teamwork.ask(people["operator"])
    deed(people, approval)

    with pytest.raises((Conflict, NotAllowed)) as refused:
        decide.decide(people["approver"], approval.id, "approve")

    assert refused.value.code in ("cancelled", "expired", "not_allowed")
    assert ToolCall.objects.get(id=approval.tool_call).status in ("blocked", "waiting")
    assert not Event.objects.filter(kind="approval.decided").exists()
