"""What control does to runs: they wait, are suspended, go on, or end; and to the questions they wait for."""

import pytest

from conversations.core.errors import TooLate
from conversations.events import log
from conversations.models import Approval, Event, Run, ToolCall
from conversations.runs import claims
from conversations.runs.approvals import decide
from tests.conversation.test_control import events, perform
from tests.support import held_run, teamwork
from tests.support.claiming import served_agents

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]


@pytest.mark.parametrize(("verb", "back"), [("pause", "resume"), ("take_over", "hand_back")])
def test_what_is_said_meanwhile_waits_and_is_answered_in_order(otto, people, verb, back):
    teamwork.say(otto)
    perform(people["admin"], verb)
    for n in "23":
        teamwork.say(otto, content=f"words {n}", client_id=n)
    assert claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=5) == []

    perform(people["admin"], back)
    answered = []
    while taken := claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=5):
        (claim,) = taken
        body = Event.objects.get(conversation__key="flood", seq=claim.input_seq).body
        answered.append(log.spoken_text(body))
        held_run.finish(claim, {"event": "run.done"})

    assert answered == ["Water on Elm Street", "words 2", "words 3"]


def test_paused_and_held_are_independent(otto):
    teamwork.say(otto)
    perform(otto, "pause", "take_over", "resume")
    assert claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=1) == []
    perform(otto, "pause", "hand_back")
    assert claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=1) == []

    perform(otto, "resume")

    assert len(claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=1)) == 1


def test_what_runs_is_asked_to_pause_until_it_is_neither_paused_nor_held(otto):
    teamwork.say(otto)
    claim = teamwork.claim()

    perform(otto, "pause", "take_over", "resume")
    assert claims.renew([claim]) == {claim.run: "pause"}

    perform(otto, "hand_back")
    assert claims.renew([claim]) == {claim.run: ""}


def suspend(claim):
    claims.suspend(claim, "pause", **teamwork.SEALED)


@pytest.mark.parametrize(("verb", "back"), [("pause", "resume"), ("take_over", "hand_back")])
def test_a_run_is_suspended_and_goes_on_with_its_state(otto, verb, back):
    teamwork.say(otto)
    claim = teamwork.claim()
    perform(otto, verb)
    assert claims.renew([claim]) == {claim.run: "pause"}
    suspend(claim)
    assert (Run.objects.get().status, Run.objects.get().reason) == ("waiting", "pause")

    perform(otto, back)

    (again,) = claims.claim("host:2", served_agents("Town Hall", "Dialogue"), at_most=1)
    assert (again.run, again.attempt, again.state) == (claim.run, 2, "{}")
    assert claims.renew([again]) == {claim.run: ""}
    assert events("run.resumed")[-1][1]["by"] == "user:otto"


def test_a_pause_that_was_over_before_the_worker_let_go_leaves_nothing_waiting(otto):
    teamwork.say(otto)
    claim = teamwork.claim()

    perform(otto, "pause", "resume")
    suspend(claim)

    assert Run.objects.get().status == "queued"
    assert len(claims.claim("host:2", served_agents("Town Hall", "Dialogue"), at_most=1)) == 1


def test_a_decision_is_kept_while_it_is_held_and_acted_on_after(people, otto):
    approval = teamwork.ask(otto)
    perform(otto, "take_over")

    decide.decide(people["approver"], approval.id, "approve")
    assert claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=1) == []
    perform(otto, "hand_back")

    assert len(claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=1)) == 1


def test_a_question_still_waits_after_a_pause(otto):
    approval = teamwork.ask(otto)

    perform(otto, "pause", "resume")

    assert Run.objects.get().status == "waiting"
    assert Approval.objects.open().get() == approval


@pytest.mark.parametrize("verb", ["stop", "abort"])
def test_what_runs_is_asked_and_what_is_queued_ends_at_once(otto, verb):
    teamwork.say(otto)
    claim = teamwork.claim()
    teamwork.say(otto, content="more", client_id="2")

    perform(otto, verb)

    assert claims.renew([claim]) == {claim.run: verb}
    assert [run.status for run in Run.objects.order_by("queued_seq")] == ["running", "cancelled"]
    assert events("run.stopping")[0][1]["how"] == verb


def test_an_abort_goes_before_a_stop_and_never_the_other_way(otto):
    teamwork.say(otto)
    claim = teamwork.claim()

    perform(otto, "stop", "abort")
    with pytest.raises(TooLate):
        perform(otto, "stop")

    assert claims.renew([claim]) == {claim.run: "abort"}


def test_a_question_is_withdrawn_by_a_stop(otto):
    approval = teamwork.ask(otto)

    perform(otto, "stop")

    approval.refresh_from_db()
    assert (approval.status, approval.decided_by, ToolCall.objects.get().status) == (
        "cancelled",
        "user:otto",
        "blocked",
    )


@pytest.mark.parametrize("let_go", ["suspend", "requeue"])
def test_a_run_that_was_asked_to_end_while_its_worker_let_go_of_it_ends(otto, let_go):
    teamwork.say(otto)
    claim = teamwork.claim()
    perform(otto, "stop")

    if let_go == "suspend":
        claims.suspend(claim, "approval", **teamwork.SEALED)
    else:
        claims.requeue(claim, "the worker stopped")

    assert (Run.objects.get().status, Run.objects.get().state) == ("cancelled", None)
