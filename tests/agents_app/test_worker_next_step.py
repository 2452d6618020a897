"""A message for the next step reaches a run at work once, in its place, and is answered by it; by a real worker and a
model that shows what it was given."""

import pytest
from agents import Agent, function_tool
from agents.testing import function_call

from agents_app.memory import session
from agents_app.teams.definition import Team
from conversations.conversation import control, delivery_status, post_message
from conversations.core.errors import NotAllowed
from conversations.models import Approval, Conversation, Event, Run, SessionItem, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide, pending_counts
from tests.agents_app.test_worker_heard import Model, Work, answers, clerks, memory
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, working
from tests.support.cast import cast
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def by():
    return cast()["operator"]


@pytest.fixture
def work():
    return Work()


def steer(by, words, to="agent:Clerk", when="next_step"):
    return post_message.post(by, "c", recipient=to, content=words, client_id=words, when=when).seq


def call(n=1):
    return [function_call("work", {}, call_id=f"c{n}")]


def at_work(n=1):
    until(lambda: ToolCall.objects.filter(status="executing").count() == 1 and ToolCall.objects.count() == n,
          what="the call to run")  # fmt: skip


def mark(seq):
    return delivery_status.statuses_for(Conversation.objects.get(key="c"), [seq])[seq]


def test_it_reaches_the_run_before_its_model_is_asked_again(by, work):
    model = Model(call(), *answers("Done.", "Bye."))
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        seq = steer(by, "Be quick.")
        work.may_end.set()
        ended_runs(2)
        send_message("bye")
        ended_runs(3)

    seen = ["user: hello", "function_call", "function_call_output", "user: Be quick."]
    assert model.given[1] == seen
    assert model.given[2] == memory()[:-1] == [*seen, "assistant: Done.", "user: bye"]
    [delivered] = event_bodies("run.delivered")
    first, second, _ = Run.objects.order_by("queued_seq")
    assert (delivered["run_id"], delivered["into"], delivered["step"], delivered["input_seq"]) == (
        *(second.id, first.id, 2, seq),
    )
    assert (second.status, second.attempt, Event.objects.get(seq=second.ended_seq).principal) == (
        *("delivered", 0, "agent:Clerk"),
    )
    assert SessionItem.objects.filter(payload__startswith=session.DELIVERED).count() == 1


def test_after_the_run_is_what_is_done_without_a_wish(by, work):
    model = Model(call(), *answers("Done.", "Quick."))
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        steer(by, "Be quick.", when="after_run")
        send_message("And you?", metadata={"when": {"odd": "of another maker"}, "hop": 3})
        send_message("And I?", metadata={"when": "next_step", "hop": 3})
        work.may_end.set()
        until(lambda: Run.objects.filter(status="done").exists(), what="the first to end")

    assert model.given[1] == ["user: hello", "function_call", "function_call_output"]
    assert "run.delivered" not in event_kinds()
    assert not Run.objects.filter(at_next_step=True).exists()


def test_a_client_of_the_bus_may_wish_it_too(work):
    model = Model(call(), *answers("Done."))
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        send_message("Be quick.", metadata={"when": "next_step"})
        work.may_end.set()
        ended_runs(2)

    assert model.given[1][-1] == "user: Be quick."


def test_several_reach_it_in_order_and_what_waits_for_its_end_does_not(by, work):
    model = Model(call(), *answers("Done.", "Later."))
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        steer(by, "Later, please.", when="after_run")
        steer(by, "Be quick.")
        steer(by, "And polite.")
        work.may_end.set()
        ended_runs(4)

    assert model.given[1][-2:] == ["user: Be quick.", "user: And polite."]
    assert model.given[2][-2:] == ["assistant: Done.", "user: Later, please."]


def test_a_run_that_ends_before_another_step_leaves_it_as_the_next_message(by, work):
    """The call is the last thing of this run: its result is the answer."""
    clerk = Agent(name="Clerk", model=(model := Model(call(), *answers("Quick."))), tools=[work.tool])
    clerk.tool_use_behavior = "stop_on_first_tool"
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        send_message("hello")
        at_work()
        steer(by, "Be quick.")
        work.may_end.set()
        ended_runs(2)

    assert [run.status for run in Run.objects.order_by("queued_seq")] == ["done", "done"]
    assert model.given[1][-1] == "user: Be quick."
    assert "run.delivered" not in event_kinds()


@pytest.mark.slow
def test_it_waits_through_an_approval_and_stays_in_its_place_through_the_next():
    people = cast()
    by, ada = people["operator"], people["approver"]

    @function_tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    calls = [[function_call("pay", {}, call_id=f"c{n}")] for n in (1, 2)]
    model = Model(*calls, *answers("Done.", "Bye."))
    with working(clerks(model, pay)):
        send_message("hello")
        for n in (1, 2):
            until(lambda n=n: Approval.objects.filter(status="pending").count() == 1 and
                  Approval.objects.count() == n, what="the question")  # fmt: skip
            if n == 1:
                steer(by, "Be quick.")
            decide.decide(ada, Approval.objects.get(status="pending").id, "approve")
        ended_runs(2)
        send_message("bye")
        ended_runs(3)

    first = ["user: hello", "function_call", "function_call_output", "user: Be quick."]
    assert model.given[1] == first
    assert model.given[2] == [*first, "function_call", "function_call_output"]
    assert model.given[3] == memory()[:-1] == [*model.given[2], "assistant: Done.", "user: bye"]
    assert event_kinds().count("run.delivered") == 1


@pytest.mark.slow
def test_who_sent_it_does_not_decide_about_the_calls_that_come_of_it(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    people = cast()
    by, ada = people["admin"], people["approver"]
    work = Work()

    @function_tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    model = Model(call(), [function_call("pay", {}, call_id="p")], *answers("Done."))
    with working(clerks(model, work.tool, pay)):
        send_message("hello")
        at_work()
        steer(by, "Pay them.")
        work.may_end.set()
        request = until(lambda: Approval.objects.first(), what="the question").id

        assert pending_counts.excluded_approvers([request]) == {request: {"token:robot", f"user:{by.username}"}}
        with pytest.raises(NotAllowed, match="four eyes"):
            decide.decide(by, request, "approve")
        decide.decide(ada, request, "approve")
        ended_runs(2)


def test_while_the_conversation_is_held_it_waits(by, work):
    model = Model(call(), *answers("Done."))
    with working(clerks(model, work.tool)) as worker:
        send_message("hello")
        at_work()
        control.pause(by, "c")
        steer(by, "Be quick.")
        until(
            lambda: [run._requested_stop for run, *_ in worker._active_runs.values()] == ["pause"],
            what="it to be heard",
        )
        work.may_end.set()
        until(lambda: Run.objects.filter(status="waiting").exists(), what="it to be suspended")
        assert "run.delivered" not in event_kinds()
        control.resume(by, "c")
        ended_runs(2)

    assert model.given[1][-1] == "user: Be quick."
    assert memory()[-2:] == ["user: Be quick.", "assistant: Done."]


def test_a_run_that_was_asked_to_stop_takes_nothing_in(by, work):
    model = Model(call(), *answers("Quick."))
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        steer(by, "Be quick.")
        stop_and_rerun.cancel_run(by, Run.objects.get(status="running").id)
        work.may_end.set()
        ended_runs(2)

    assert "run.delivered" not in event_kinds()
    assert model.given[-1][-1] == "user: Be quick."


def test_a_message_for_another_agent_waits_for_its_own_run(by, work):
    other = Agent(name="Desk", model=Model(*answers("Desk here.")))
    clerk = Agent(name="Clerk", model=Model(call(), *answers("Done.")), tools=[work.tool])
    with working(Team(name="test", agents=[clerk, other], entry=["Clerk", "Desk"])):
        send_message("hello")
        at_work()
        steer(by, "And you?", to="agent:Desk")
        work.may_end.set()
        ended_runs(2)

    assert [(run.agent, run.status) for run in Run.objects.order_by("queued_seq")] == [
        ("Clerk", "done"),
        ("Desk", "done"),
    ]


def test_its_mark_tells_the_step_and_then_the_answer(by, work):
    model = Model(call(), call(2), *answers("Done."))
    with working(clerks(model, work.tool)):
        send_message("hello")
        at_work()
        seq = steer(by, "Be quick.")
        assert (mark(seq).state, str(mark(seq).detail)) == ("waits", "delivered at its next step")
        work.may_end.set()
        ended_runs(2)

    shown = mark(seq)
    assert (shown.state, shown.words, str(shown.agent)) == ("answered", "Delivered at step 2, answered by", "Clerk")
    assert shown.link == Event.objects.filter(kind="output").order_by("-seq").first().seq
