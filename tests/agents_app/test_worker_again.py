"""What a model is given when a run is run again: each message once, by a real worker."""

import pytest
from agents.testing import assistant_message

from agents_app.memory import session
from conversations.conversation import control
from conversations.models import Run, SessionItem
from conversations.runs import stop_and_rerun
from tests.agents_app.test_worker_heard import Model, Work, clerks
from tests.agents_app.test_worker_next_step import at_work, call, steer
from tests.support.agents_running import ended_runs, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)
DONE = [assistant_message("Done.")]
DOWN = RuntimeError("down")


@pytest.fixture
def work():
    return Work()


def again_after(otto, count: int) -> None:
    """Run the last run again once so many have ended."""
    stop_and_rerun.run_again(otto, ended_runs(count)[-1].id)


def test_words_of_a_run_that_failed_are_given_once_however_often_it_is_run_again(otto):
    model = Model(DOWN, DOWN, DONE, DONE)
    with working(clerks(model)):
        send_message("Pay 5")
        again_after(otto, 1)
        again_after(otto, 2)
        ended_runs(3)
        send_message("thanks")
        ended_runs(4)

    assert model.given == [["user: Pay 5"]] * 3 + [["user: Pay 5", "assistant: Done.", "user: thanks"]]


def test_what_a_failed_run_had_called_stands_after_its_words(otto, work):
    work.may_end.set()
    model = Model(call(), DOWN, DONE)
    with working(clerks(model, work.tool)):
        send_message("hello")
        again_after(otto, 1)
        ended_runs(2)

    assert model.given[2] == model.given[1] == ["user: hello", "function_call", "function_call_output"]


def test_a_message_delivered_to_a_run_that_failed_is_given_once(otto, work):
    model = Model(call(), DOWN, DONE)
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        seq = steer(otto, "Only Elm.")
        work.may_end.set()
        ended_runs(2)
        stop_and_rerun.run_again(otto, Run.objects.get(input_seq=seq).id)
        ended_runs(3)

    assert model.given[2] == model.given[1]
    assert model.given[2].count("user: Only Elm.") == 1


def test_words_stopped_in_the_queue_and_heard_by_a_run_that_failed_are_given_once(otto):
    model = Model(DOWN, DONE)
    send_message("Look.", to="agent:Nobody")
    with working(clerks(model)):
        control.pause(otto, "c")
        send_message("where is it?")
        stopped = Run.objects.get()
        stop_and_rerun.cancel_run(otto, stopped.id)
        send_message("thanks")
        control.resume(otto, "c")
        ended_runs(2)
        stop_and_rerun.run_again(otto, stopped.id)
        ended_runs(3)

    assert model.given[1] == model.given[0] == ["user: where is it?", "user: thanks"]


def test_words_are_given_once_more_after_another_run_answered_meanwhile(otto):
    model = Model(DOWN, DONE, DONE)
    with working(clerks(model)):
        send_message("Pay 5")
        failed = ended_runs(1)[0].id
        send_message("hello")
        ended_runs(2)
        stop_and_rerun.run_again(otto, failed)
        ended_runs(3)

    assert model.given[2][-1] == "user: Pay 5"


def test_words_that_the_memory_has_lost_are_given_again(otto):
    model = Model(DOWN, DONE)
    with working(clerks(model)):
        send_message("Pay 5")
        failed = ended_runs(1)[0].id
        SessionItem.objects.filter(conversation="c").exclude(payload__startswith=session.OURS).delete()
        stop_and_rerun.run_again(otto, failed)
        ended_runs(2)

    assert model.given[1] == ["user: Pay 5"]


def test_the_same_text_sent_twice_is_two_messages(otto):
    model = Model(DONE, DOWN, DONE)
    with working(clerks(model)):
        send_message("Pay 5")
        ended_runs(1)
        send_message("Pay 5")
        again_after(otto, 2)
        ended_runs(3)

    assert model.given[2] == ["user: Pay 5", "assistant: Done.", "user: Pay 5"]
