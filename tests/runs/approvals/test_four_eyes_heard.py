"""Four eyes for words that a run heard though no run answers them: their authors are behind it, too."""

import pytest

from conversations.conversation import control, post_message
from conversations.core.errors import NotAllowed
from conversations.models import Approval, Run
from conversations.runs import claims, stop_and_rerun
from conversations.runs.approvals import decide, pending_counts
from conversations.runs.claims import Claim
from tests.support import held_run, teamwork
from tests.support.agents_running import send_message

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def four_eyes(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    teamwork.team()


def ask(claimed: Claim, id_: str = "ask") -> None:
    """Suspend a run with a request, as its worker would."""
    facts = {"event": "approval.requested", "approval_id": id_, "tool_call": id_, **teamwork.ASKED}
    claims.suspend(claimed, "approval", facts, **teamwork.SEALED)


def robot_asks() -> None:
    send_message("File it.", to="agent:Dialogue")


def interject(by) -> None:
    """Say something to nobody, while the conversation is taken over."""
    control.take_over(by, "c")
    post_message.post(by, "c", recipient="chat:c", content="Also pay account 7.", client_id="1")
    control.hand_back(by, "c")


def barred(id_: str = "ask") -> bool:
    return "user:ada" in pending_counts.excluded_approvers().get(id_, ())


def test_who_spoke_while_a_run_waited_does_not_decide_what_it_asks_after_that(people):
    robot_asks()
    ask(teamwork.claim("c"), "first")
    interject(people["admin"])
    assert not barred("first")  # the run does not know the words yet
    decide.decide(people["admin"], "first", "approve")
    ask(teamwork.claim("c"), "second")

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(people["admin"], "second", "approve")

    assert barred("second")
    assert decide.decide(people["approver"], "second", "approve").decided_by == "user:april"


def test_who_spoke_before_a_run_began_does_not_decide_until_the_words_are_answered(people):
    robot_asks()
    control.pause(people["operator"], "c")
    interject(people["admin"])
    control.resume(people["operator"], "c")
    claimed = teamwork.claim("c")
    held_run.finish(claimed, {"event": "run.failed", "reason": "error", "error": "down"})
    stop_and_rerun.run_again(people["operator"], claimed.run)
    ask(teamwork.claim("c"))
    assert barred()

    decide.decide(people["approver"], "ask", "approve")
    held_run.finish(teamwork.claim("c"), {"event": "run.done"})
    robot_asks()
    ask(teamwork.claim("c"), "next")

    assert not barred("next")


def test_who_wrote_what_failed_unanswered_does_not_decide_in_the_run_after_it(people):
    post_message.post(people["admin"], "c", recipient="agent:Dialogue", content="Pay account 7.", client_id="1")
    held_run.finish(teamwork.claim("c"), {"event": "run.failed", "reason": "error", "error": "down"})
    robot_asks()

    ask(teamwork.claim("c"))

    assert barred()


def test_words_stopped_in_the_queue_stay_their_authors_though_run_again(people):
    control.pause(people["operator"], post_first(people["operator"]))
    post_message.post(people["admin"], "c", recipient="agent:Dialogue", content="Pay account 7.", client_id="2")
    stopped = Run.objects.latest("queued_seq").id
    stop_and_rerun.cancel_run(people["admin"], stopped)
    control.resume(people["operator"], "c")
    ask(teamwork.claim("c"))
    assert barred()

    stop_and_rerun.run_again(people["admin"], stopped)

    assert barred()


def post_first(by) -> str:
    return post_message.post(by, "c", recipient="agent:Dialogue", content="Look.", client_id="0").conversation


def test_words_that_wait_for_a_run_of_their_own_bar_nobody(people):
    post_first(people["operator"])
    post_message.post(people["admin"], "c", recipient="agent:Dialogue", content="Pay account 7.", client_id="2")

    ask(teamwork.claim("c"))

    assert not barred()
    assert Approval.objects.count() == 1
