"""A worker over scripted models: what becomes of a run, and what the record has of it."""

import asyncio
import json
import time
from collections import Counter

import pytest
from agents import Agent, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from agents_app.teams.definition import Team
from agents_app.worker import agent_run
from conversations.models import Conversation, Run, SessionItem, ToolCall
from conversations.runs import stop_and_rerun
from tests.support.agents_running import Scripted, ended_runs, event_bodies, event_kinds, send_message, team, working
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_a_message_is_answered_and_every_step_is_in_the_record():
    with working(team([assistant_message("Good day.")])):
        send_message()
        ended_runs()

    assert event_kinds() == [
        "message",
        "run.queued",
        "run.started",
        "output",
        "model.turn",
        "conversation.handler",
        "run.done",
    ]
    (output,) = event_bodies("output")
    assert (output["text"], output["turn"], output["final"], output["agent"]) == ("Good day.", 1, True, "Clerk")
    assert "".join(token["text"] for token in event_bodies("token")) == "Good day."
    assert Conversation.objects.get().handler == "agent:Clerk"


def test_a_tool_call_is_told_with_its_identity_arguments_and_output():
    steps = [function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("5")]
    with working(team(*steps, tools=[add])):
        send_message()
        ended_runs()

    start, end = event_bodies("tool_step")
    assert (start["status"], start["args"], start["tool_call_id"]) == ("start", {"a": 2, "b": 3}, "c1")
    assert (start["lookup_key"], start["origin"], start["namespace"]) == ("bare:add", "function", None)
    assert (end["status"], end["output"], end["tool_call"]) == ("success", 5, start["tool_call"])
    call = ToolCall.objects.get()
    assert (call.id, call.status, call.call_id) == (start["tool_call"], "done", "c1")
    assert call.schema in event_bodies("model.turn")[0]["tools"]


@function_tool
async def slow(name: str, seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return name


def test_parallel_calls_that_end_out_of_order_keep_their_own_ids_and_outputs():
    calls = [
        function_call("slow", {"name": "first", "seconds": 0.3}, call_id="c1"),
        function_call("slow", {"name": "second", "seconds": 0.0}, call_id="c2"),
    ]
    with working(team(calls, [assistant_message("both")], tools=[slow])):
        send_message()
        ended_runs()

    ends = [(step["tool_call_id"], step["output"]) for step in event_bodies("tool_step") if step["status"] == "success"]
    assert ends == [("c2", "second"), ("c1", "first")]
    assert set(ToolCall.objects.values_list("call_id", "status")) == {("c1", "done"), ("c2", "done")}


def test_a_call_id_of_another_run_is_another_call():
    steps = [function_call("add", {"a": 1, "b": 1}, call_id="same")], [assistant_message("2")]
    with working(team(*steps, *steps, tools=[add])):
        send_message("one")
        send_message("two")
        ended_runs(2)

    assert [step["output"] for step in event_bodies("tool_step") if step["status"] == "success"] == [2, 2]
    assert ToolCall.objects.values("id").distinct().count() == 2


class Receipt(BaseModel):
    number: int
    lines: list[str]


OUTPUTS = {
    "zero": (0, 0),
    "false": (False, False),
    "empty": ("", ""),
    "none": (None, None),
    "empty list": ([], []),
    "structured": (Receipt(number=1, lines=["a"]), {"number": 1, "lines": ["a"]}),
    "wrapped": ({"response": [1, 2]}, {"response": [1, 2]}),
    "infinite": (float("inf"), "Infinity"),
    "bytes": (b"\xff\x00", "_wA="),
}


@pytest.mark.parametrize(("given", "stored"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_is_kept_as_it_is(given, stored):
    @function_tool
    def give():
        """Give."""
        return given

    with working(team([function_call("give", {}, call_id="c1")], [assistant_message("so")], tools=[give])):
        send_message()
        ended_runs()

    end = event_bodies("tool_step")[-1]
    assert (end["status"], end["output"]) == ("success", stored)


@pytest.mark.slow
def test_a_huge_output_is_cut_and_its_size_told():
    @function_tool
    def give() -> str:
        """Give."""
        return "x" * 3_000_000

    with working(team([function_call("give", {}, call_id="c1")], [assistant_message("so")], tools=[give])):
        send_message()
        (run,) = ended_runs()

    end = event_bodies("tool_step")[-1]
    assert (run.status, end["output_bytes"], len(end["output"])) == ("done", 3_000_002, 100_001)


def test_arguments_that_are_no_text_at_all_are_an_empty_object():
    @function_tool
    def give() -> str:
        """Give."""
        return "given"

    with working(team([function_call("give", "", call_id="c1")], [assistant_message("so")], tools=[give])):
        send_message()
        ended_runs()

    start, end = event_bodies("tool_step")
    assert (start["args"], start["args_raw"], end["output"]) == ({}, "", "given")


def failing(**settings):
    @function_tool(**settings)
    def fail():
        """Fail."""
        raise ValueError("the drawer is stuck")

    return fail


@pytest.mark.parametrize(
    "settings", [{}, {"failure_error_function": lambda ctx, error: "no luck"}], ids=["default", "own"]
)
def test_the_real_exception_of_a_tool_is_told_whatever_the_model_hears(settings):
    steps = [function_call("fail", {}, call_id="c1")], [assistant_message("sorry")]
    with working(team(*steps, tools=[failing(**settings)])):
        send_message()
        (run,) = ended_runs()

    end = event_bodies("tool_step")[-1]
    assert (end["status"], end["error"]) == ("error", "ValueError: the drawer is stuck")
    assert "drawer" not in end["output"]
    assert (run.status, ToolCall.objects.get().status) == ("done", "failed")


def test_an_exception_that_no_one_formats_fails_the_call_and_the_run():
    with working(team([function_call("fail", {}, call_id="c1")], tools=[failing(failure_error_function=None)])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, run.reason, ToolCall.objects.get().status) == ("failed", "error", "failed")
    assert "the drawer is stuck" in event_bodies("run.failed")[0]["error"]
    assert "the drawer is stuck" in event_bodies("tool_step")[-1]["error"]


def test_a_tool_over_its_time_is_told_as_such():
    @function_tool(timeout=0.05)
    async def stall() -> str:
        """Stall."""
        await asyncio.sleep(30)
        return "never"

    with working(team([function_call("stall", {}, call_id="c1")], [assistant_message("late")], tools=[stall])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, event_bodies("tool_step")[-1]["status"], ToolCall.objects.get().status) == (
        "done",
        "timeout",
        "timeout",
    )


def test_a_run_without_end_is_ended_by_its_turns():
    steps = [[function_call("add", {"a": n, "b": 0}, call_id=f"c{n}")] for n in range(5)]
    with working(team(*steps, tools=[add], max_turns=3)):
        send_message()
        (run,) = ended_runs()

    assert (run.status, run.reason) == ("failed", "max_turns")
    assert len(event_bodies("model.turn")) == 3


def test_a_run_over_its_time_is_ended_and_its_open_call_is_unknown():
    steps = [function_call("slow", {"name": "x", "seconds": 60}, call_id="c1")], [assistant_message("late")]
    with working(team(*steps, tools=[slow]), limit_s=0.5):
        send_message()
        (run,) = ended_runs()

    assert (run.status, run.reason, ToolCall.objects.get().status) == ("failed", "timeout", "unknown")


def test_a_model_error_fails_the_run_with_its_reason_and_no_secret():
    error = RuntimeError("401 for key sk-planted-1234567890, Authorization: Bearer abcdef123456")
    with working(team(ModelStep.raise_error(error))):
        send_message()
        (run,) = ended_runs()

    (failed,) = event_bodies("run.failed")
    assert (run.status, failed["reason"]) == ("failed", "error")
    assert failed["error"].startswith("RuntimeError: 401 for key")
    assert "planted" not in failed["error"]
    assert "abcdef123456" not in failed["error"]


def test_a_handoff_cycle_goes_round_and_the_last_agent_answers_the_next_message():
    front = Agent(name="Front", model=ScriptedModel([[function_call("transfer_to_back", {}, call_id="h1")]]))
    back = Agent(
        name="Back",
        model=ScriptedModel(
            [
                [function_call("transfer_to_front", {}, call_id="h2")],
                [assistant_message("Back here.")],
                [assistant_message("Still back.")],
            ]
        ),
    )
    front.model.enqueue([function_call("transfer_to_back", {}, call_id="h3")])
    front.handoffs, back.handoffs = [back], [front]
    with working(Team(name="cycle", agents=[front, back], entry=["Front"])):
        send_message(to="agent:Front")
        ended_runs()
        send_message("again", to="chat:c")
        ended_runs(2)

    moves = [(m["from_agent"], m["to_agent"]) for m in event_bodies("agent.handoff")]
    assert moves == [("Front", "Back"), ("Back", "Front"), ("Front", "Back")]
    assert [(o["agent"], o["text"]) for o in event_bodies("output")] == [
        ("Back", "Back here."),
        ("Back", "Still back."),
    ]
    assert list(Run.objects.order_by("queued_seq").values_list("agent", flat=True)) == ["Front", "Back"]


def test_a_silent_agent_ends_its_run_without_a_word():
    with working(team([assistant_message("")])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, event_bodies("output")) == ("done", [])


def test_two_agents_of_one_name_in_two_teams_each_answer_in_their_own_conversations():
    def with_desk(team_name, entry):
        desk = Agent(name="Desk", model=ScriptedModel([[assistant_message(f"desk of {team_name}")]] * 2))
        first = Agent(
            name=entry, model=ScriptedModel([[function_call("transfer_to_desk", {}, call_id="h")]]), handoffs=[desk]
        )
        return Team(name=team_name, agents=[first, desk], entry=[entry])

    with working(with_desk("north", "Nora"), with_desk("south", "Sam")):
        send_message(key="n", to="agent:Nora")
        send_message(key="s", to="agent:Sam")
        ended_runs(2)
        send_message(key="s", to="chat:s")
        send_message(key="n", to="chat:n")
        ended_runs(4)

    assert [o["text"] for o in event_bodies("output", "n")] == ["desk of north"] * 2
    assert [o["text"] for o in event_bodies("output", "s")] == ["desk of south"] * 2


def test_the_second_of_two_quick_messages_is_answered_after_the_first():
    with working(team([assistant_message("to one")], [assistant_message("to two")])):
        send_message("one")
        send_message("two")
        first, second = ended_runs(2)

    assert [output["text"] for output in event_bodies("output")] == ["to one", "to two"]
    assert first.ended_seq < second.ended_seq
    items = [json.loads(item) for item in SessionItem.objects.order_by("seq").values_list("payload", flat=True)]
    assert [item["content"] for item in items if item.get("role") == "user"] == ["one", "two"]


def test_a_person_stops_a_run_and_what_was_executing_is_unknown(otto):
    steps = [function_call("slow", {"name": "x", "seconds": 60}, call_id="c1")], [assistant_message("late")]
    with working(team(*steps, tools=[slow])) as worker:
        send_message()
        until(lambda: ToolCall.objects.filter(status="executing").exists(), what="the call to run")
        began = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(agent_run, "GRACE", 0.2)
            stop_and_rerun.cancel_run(otto, Run.objects.get().id)
            (run,) = ended_runs()

    assert time.monotonic() - began < 40  # the call would take 60
    assert (run.status, ToolCall.objects.get().status) == ("cancelled", "unknown")
    assert worker.facts()["running"] == 0


@pytest.mark.slow
def test_a_call_that_ends_in_time_after_a_stop_is_told_and_the_run_is_cancelled(otto):
    steps = [function_call("slow", {"name": "x", "seconds": 1.2}, call_id="c1")], [assistant_message("never")]
    with working(team(*steps, tools=[slow])):
        send_message()
        until(lambda: ToolCall.objects.filter(status="executing").exists(), what="the call to run")
        stop_and_rerun.cancel_run(otto, Run.objects.get().id)
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status, event_bodies("output")) == ("cancelled", "done", [])


def test_a_worker_that_stops_puts_runs_back_at_a_turns_end_and_another_goes_on():
    calls = []

    @function_tool
    async def count() -> int:
        """Count."""
        calls.append(1)
        await asyncio.sleep(0.6)
        return len(calls)

    steps = [[function_call("count", {}, call_id="c1")], [assistant_message("one")]]
    served = team(*steps, tools=[count])
    with working(served, stop_s=0.2):
        send_message()
        until(lambda: ToolCall.objects.filter(status="executing").exists(), what="the call to run")
    assert Run.objects.get().status == "queued"
    with working(served):
        (run,) = ended_runs()

    assert (run.status, run.attempt, calls) == ("done", 2, [1])
    assert [output["text"] for output in event_bodies("output")] == ["one"]


def test_a_worker_that_stops_cancels_what_does_not_end_and_says_so():
    steps = [function_call("slow", {"name": "x", "seconds": 60}, call_id="c1")], [assistant_message("late")]
    with working(team(*steps, tools=[slow]), stop_s=0.1):
        send_message()
        until(lambda: ToolCall.objects.filter(status="executing").exists(), what="the call to run")

    assert (Run.objects.get().status, ToolCall.objects.get().status) == ("cancelled", "unknown")
    assert event_bodies("run.cancelled")[0]["reason"] == "the worker stopped before the run ended"


@pytest.mark.thorough
def test_three_hundred_runs_with_tool_calls_at_once_all_end_well():
    model = Scripted(lambda: [[function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("5")]])
    clerk = Agent(name="Clerk", model=model, tools=[add])
    with working(Team(name="many", agents=[clerk], entry=["Clerk"]), per_team=300):
        for n in range(300):
            send_message(f"words {n}", key=f"c{n}")
        ended_runs(300, within=90)

    assert Counter(Run.objects.values_list("status", flat=True)) == {"done": 300}
    assert Counter(ToolCall.objects.values_list("status", flat=True)) == {"done": 300}
