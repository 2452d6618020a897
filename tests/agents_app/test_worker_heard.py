"""Agents know what people said while a run of theirs waited, or nobody was asked: by a real worker and a model that
shows what it was given."""

import asyncio
import threading

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from django.db import connection

from agents_app.memory import session
from agents_app.teams.definition import Team
from agents_app.worker.run_input import load_run_input
from conversations.access.accounts.edit_grants import give_grant
from conversations.conversation import control, post_message
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Agent as AgentRow
from conversations.models import Approval, Run, SessionItem, ToolCall, User
from conversations.runs import claims, stop_and_rerun
from conversations.runs.approvals import decide
from tests.support.agents_running import ROBOT, ended_runs, event_bodies, send_message, working
from tests.support.cast import cast
from tests.support.claiming import served_agents
from tests.support.live import until
from tests.support.unchecked import from_text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def by():
    """An operator who may speak as anybody."""
    otto = cast()["operator"]
    give_grant(SYSTEM, "otto", "speak_as", "*")
    return otto


class Model(ScriptedModel):
    """A scripted model that shows its input: who said what, and what was called."""

    def __init__(self, *steps):
        super().__init__(steps)
        self.given = []

    async def stream_response(self, system_instructions, input, *more, **named):
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        self.given.append([shown(item) for item in items])
        async for event in super().stream_response(system_instructions, input, *more, **named):
            yield event


def shown(item):
    if "role" not in item:
        return item["type"]
    content = item["content"]
    return f"{item['role']}: {content if isinstance(content, str) else content[0]['text']}"


def clerks(model, *tools):
    return Team(name="test", agents=[Agent(name="Clerk", model=model, tools=list(tools))], entry=["Clerk"])


def speak(by, content, sender="", to="chat:c", reason="by hand"):
    return post_message.post(by, "c", recipient=to, content=content, client_id=content, sender=sender, reason=reason)


def answers(*texts):
    return [[assistant_message(text)] for text in texts]


def people(role):
    return User.objects.get(roles__name=role)


def memory():
    return [shown(item) for item in session.load("c").items()]


def test_what_was_said_while_a_person_held_it_is_known_to_the_next_answer(by):
    model = Model(*answers("First.", "Second.", "Third."))
    with working(clerks(model)):
        send_message("hello")
        ended_runs(1)
        control.take_over(by, "c")
        speak(by, "I look into it.")
        speak(by, "The street is open again.", "agent:Clerk")
        speak(by, "Maintenance at noon.", "system")
        control.hand_back(by, "c")
        send_message("thanks")
        ended_runs(2)
        send_message("bye")
        ended_runs(3)

    earlier = ["user: I look into it.", "assistant: The street is open again.", "user: Maintenance at noon."]
    assert model.given[1] == ["user: hello", "assistant: First.", *earlier, "user: thanks"]
    assert model.given[2] == [*model.given[1], "assistant: Second.", "user: bye"]
    assert memory() == [*model.given[2], "assistant: Third."]
    assert SessionItem.objects.filter(payload__startswith=session.HEARD).count() == 1


def test_words_that_waited_are_answered_with_what_was_said_after_them(by):
    model = Model(*answers("First.", "Second."))
    send_message("before", to="agent:Nobody")
    control.take_over(by, "c")
    with working(clerks(model)):
        send_message("where is it?")
        speak(by, "On Elm Street.", "agent:Clerk")
        send_message("and when?")
        control.hand_back(by, "c")
        ended_runs(2)

    exchange = ["user: where is it?", "assistant: On Elm Street."]
    assert model.given == [exchange, [*exchange, "assistant: First.", "user: and when?"]]


def test_a_number_that_python_does_not_read_keeps_no_run_from_its_answer():
    fields = '"type":"message","conversation_id":"c","sender":"Rosa","recipient":"agent:Clerk","content":"?"'
    odd = f'{{{fields},"metadata":{{"a":{"9" * 5_000}}}}}'
    with working(clerks(Model(*answers("First.")))):
        log.append([from_text("chat:c", odd, ROBOT)])
        (run,) = ended_runs()

    assert run.status == "done"


def test_what_was_asked_and_stopped_before_a_run_began_is_known(by):
    model = Model(*answers("First."))
    control.pause(by, speak(by, "Hello").conversation)
    with working(clerks(model)):
        send_message("where is it?")
        stop_and_rerun.cancel_run(by, Run.objects.get().id)
        speak(by, "On Elm Street.", "agent:Clerk")
        control.resume(by, "c")
        send_message("thanks")
        ended_runs(2)

    assert model.given == [["user: Hello", "user: where is it?", "assistant: On Elm Street.", "user: thanks"]]


class Work:
    """A tool that runs until it is let go."""

    def __init__(self):
        self.may_end = threading.Event()

        @function_tool
        async def work() -> str:
            """Work."""
            while not self.may_end.is_set():  # noqa: ASYNC110  # let go by another thread
                await asyncio.sleep(0.02)
            return "worked"

        self.tool = work


@pytest.mark.slow
def test_a_run_that_was_suspended_goes_on_with_what_was_said_meanwhile(by):
    """Suspended twice: what it heard the first time stays in its place."""
    work = Work()
    calls = [[function_call("work", {}, call_id=f"c{n}")] for n in (1, 2)]
    model = Model(*calls, *answers("Done.", "Bye."))
    with working(clerks(model, work.tool)) as worker:
        send_message("hello")
        for n, words in enumerate(("Wait a moment.", "I am back.")):
            until(lambda n=n: ToolCall.objects.count() == n + 1, what="the call to run")
            control.take_over(by, "c")
            until(
                lambda: [run._requested_stop for run, *_ in worker._active_runs.values()] == ["pause"],
                what="it to be heard",
            )
            work.may_end.set()
            until(lambda: Run.objects.get().status == "waiting", what="it to be suspended")
            work.may_end.clear()
            speak(by, words, "agent:Clerk")
            control.hand_back(by, "c")
        work.may_end.set()
        ended_runs(1)
        send_message("bye")
        ended_runs(2)

    call = ["function_call", "function_call_output"]
    assert model.given[1] == ["user: hello", *call, "assistant: Wait a moment."]
    assert model.given[2] == [*model.given[1], *call, "assistant: I am back."]
    assert model.given[3] == [*model.given[2], "assistant: Done.", "user: bye"]
    assert [output["text"] for output in event_bodies("output")] == ["Done.", "Bye."]


def test_what_is_said_while_a_question_waits_comes_after_the_calls_output(by):
    @function_tool(needs_approval=True)
    def file() -> str:
        """File it."""
        return "filed"

    model = Model([function_call("file", {}, call_id="c1")], *answers("Done.", "Bye."))
    with working(clerks(model, file)):
        send_message("hello")
        approval = until(lambda: Approval.objects.first(), what="the question")
        control.take_over(by, "c")
        speak(by, "It takes a while.")
        decide.decide(SYSTEM, approval.id, "approve")
        control.hand_back(by, "c")
        until(lambda: Run.objects.get().status == "done", what="the run to end")
        send_message("bye")
        ended_runs(2)

    expected = ["user: hello", "function_call", "function_call_output", "user: It takes a while."]
    assert model.given[1:] == [expected, [*expected, "assistant: Done.", "user: bye"]]


def test_words_to_another_agent_and_agents_own_words_are_heard_once(by):
    model = Model(*answers("First.", "Second."))
    with working(clerks(model)):
        send_message("hello")
        ended_runs(1)
        send_message("I am done", to="chat:c", sender="agent:Foreign")  # over the bus
        speak(by, "Look at the bridge.", to="agent:Foreign")
        speak(by, "What is next?", to="agent:Clerk")
        ended_runs(2)

    assert model.given[1] == ["user: hello", "assistant: First.", "user: Look at the bridge.", "user: What is next?"]


@pytest.mark.slow
def test_who_said_what_a_waiting_run_is_given_does_not_decide_its_next_call(by, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    ada, april = people("admin"), people("approver")

    @function_tool(needs_approval=True)
    def pay(account: int) -> str:
        """Pay."""
        return "paid"

    calls = [[function_call("pay", {"account": n}, call_id=f"p{n}")] for n in (1, 7)]
    model = Model(*calls, *answers("Done."))
    with working(clerks(model, pay)):
        send_message("hello")
        first = until(lambda: Approval.objects.first(), what="the first request")
        control.take_over(ada, "c")
        speak(ada, "Also pay account 7.", reason="")
        control.hand_back(ada, "c")
        decide.decide(april, first.id, "approve")
        second = until(lambda: Approval.objects.exclude(id=first.id).first(), what="the second request")
        assert model.given[1][-1] == "user: Also pay account 7."

        with pytest.raises(NotAllowed, match="four eyes"):
            decide.decide(ada, second.id, "approve")

        decide.decide(april, second.id, "approve")
        ended_runs(1)


def test_what_is_said_after_a_run_was_claimed_waits_for_the_next_start(by):
    speak(by, "Hello")
    AgentRow.objects.create(name="Clerk", team="test", is_entry=True, hue=1)
    send_message("where is it?")
    (claimed,) = claims.claim("host:1", served_agents("test", "Clerk"), at_most=2)
    speak(by, "Look at the bridge.", to="agent:Foreign")

    missed = load_run_input(claimed, clerks(Model())).missed

    assert ([item["content"] for item in missed.before], missed.after) == (["Hello"], [])


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite's driver reports each statement")
def test_the_input_of_a_run_that_begins_is_read_in_three_statements(by):
    AgentRow.objects.create(name="Clerk", team="test", is_entry=True, hue=1)
    send_message("where is it?")
    (claimed,) = claims.claim("host:1", served_agents("test", "Clerk"), at_most=2)
    statements: list[str] = []

    connection.connection.set_trace_callback(statements.append)
    try:
        load_run_input(claimed, clerks(Model()))
    finally:
        connection.connection.set_trace_callback(None)

    assert len(statements) == 3, statements
