"""What `watch_agents` tells of runs of the real Agents SDK, against a scripted model server."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    UserError,
    function_tool,
    input_guardrail,
)
from openai import AsyncOpenAI

from switchboard import BusMessage, InMemoryBus, Refused, watch_agents
from switchboard import agent_watch as module
from switchboard.agent_watch import AgentWatch
from switchboard.span_events import SpanEvents
from tests.support.provider_answers import call, message
from tests.support.provider_server import Answer, Asked, served_apart
from tests.support.watched import completion, in_turn, model, payloads, watched

IN = RunConfig(group_id="g")
LONGEST_WAIT = 60.0


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def run(agent: Agent[Any], words: Any = "what is 1 + 2?", **more: Any) -> Any:
    """Run an agent to its end, in the group g."""
    return asyncio.run(Runner.run(agent, words, **{"run_config": IN} | more))


def events(watch: AgentWatch, bus: InMemoryBus, topic: str = "stream:g") -> list[dict[str, Any]]:
    """Return what was published, in order."""
    assert watch.flush(LONGEST_WAIT)
    return payloads(bus.read(topic, limit=1000))


def kinds(payloads: list[dict[str, Any]]) -> list[str]:
    """Name the events, tool steps by their status."""
    return [event.get("status") or event["event"] for event in payloads]


def of_kind(payloads: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Keep the events of some kinds."""
    return [event for event in payloads if event["event"] in names]


def test_run_is_told_whole() -> None:
    steps = [call("add", {"a": 1, "b": 2}, "call_1")], [message("It is 3.")]
    with served_apart(in_turn(*steps)) as server, watched() as (watch, bus):
        run(Agent("Counter", model=model(server), tools=[add]))

        recorded_events = events(watch, bus)

    assert kinds(recorded_events) == [
        *("run.started", "user_message", "model.call", "start", "success", "model.call", "output", "run.done"),
    ]  # fmt: skip
    assert [event["agent"] for event in recorded_events if "agent" in event] == ["Counter"] * 7
    assert recorded_events[1]["text"] == "what is 1 + 2?"
    assert (
        recorded_events[3] | {"name": "add", "tool_call_id": "call_1", "args_raw": '{"a": 1, "b": 2}'}
        == recorded_events[3]
    )
    assert (recorded_events[4]["tool_call_id"], recorded_events[4]["output"]) == ("call_1", 3)
    assert recorded_events[6]["text"] == "It is 3."
    assert [turn["usage"]["input_tokens"] for turn in of_kind(recorded_events, "model.call")] == [11, 11]
    assert recorded_events[7]["usage"] == {"input_tokens": 22, "output_tokens": 10, "total_tokens": 32}


def test_streamed_run_is_told_the_same() -> None:
    async def stream(agent: Agent[Any]) -> None:
        result = Runner.run_streamed(agent, "what is 1 + 2?", run_config=IN)
        async for _ in result.stream_events():
            pass

    steps = [call("add", {"a": 1, "b": 2}, "call_1")], [message("It is 3.")]
    with served_apart(in_turn(*steps)) as server, watched() as (watch, bus):
        asyncio.run(stream(Agent("Counter", model=model(server), tools=[add])))

        recorded_events = events(watch, bus)

    assert kinds(recorded_events) == [
        *("run.started", "user_message", "model.call", "start", "success", "model.call", "output", "run.done"),
    ]  # fmt: skip


def test_calls_of_one_tool_at_once_keep_their_ids() -> None:
    second_ended = asyncio.Event()

    @function_tool
    async def look(at: str) -> str | None:
        """Look at something; the first look ends last, the third finds nothing."""
        if at == "b":
            second_ended.set()
        elif at == "a":
            await second_ended.wait()
        return None if at == "c" else f"saw {at}"

    asks = [call("look", {"at": at}, f"call_{at}") for at in "abc"]
    with served_apart(in_turn(asks, [message("done")])) as server, watched() as (watch, bus):
        run(Agent("Watcher", model=model(server), tools=[look]))

        steps = of_kind(events(watch, bus), "tool_step")

    starts = {step["tool_call_id"]: step["args_raw"] for step in steps if step["status"] == "start"}
    ends = {step["tool_call_id"]: step.get("output") for step in steps if step["status"] == "success"}
    assert starts == {f"call_{at}": f'{{"at": "{at}"}}' for at in "abc"}
    assert ends == {"call_a": "saw a", "call_b": "saw b", "call_c": None}
    assert len(steps) == 6


def test_handoffs_and_agents_inside_tools_are_told() -> None:
    steps = (
        [call("transfer_to_clerk", {}, "call_h")],
        [call("ask_expert", {"input": "how much?"}, "call_e")],
        [message("Seven.")],
        [message("It is seven.")],
    )
    with served_apart(in_turn(*steps)) as server, watched() as (watch, bus):
        expert = Agent("Expert", model=model(server))
        clerk = Agent("clerk", model=model(server), tools=[expert.as_tool("ask_expert", "Ask.")])
        run(Agent("Triage", model=model(server), handoffs=[clerk]))

        recorded_events = events(watch, bus)

    (handoff,) = of_kind(recorded_events, "agent.handoff")
    assert (handoff["from_agent"], handoff["to_agent"]) == ("Triage", "clerk")
    assert [(event["agent"], event["text"]) for event in of_kind(recorded_events, "output")] == [
        ("Expert", "Seven."),
        ("clerk", "It is seven."),
    ]
    assert {event.get("parent_call") for event in recorded_events if event.get("agent") == "Expert"} == {"call_e"}
    assert [event["text"] for event in of_kind(recorded_events, "user_message")] == ["what is 1 + 2?", "how much?"]
    steps_told = of_kind(recorded_events, "tool_step")
    assert [(step["tool_call_id"], step["agent"]) for step in steps_told] == [("call_e", "clerk")] * 2
    assert kinds(recorded_events).count("run.started") == kinds(recorded_events).count("run.done") == 2


def test_history_is_told_once() -> None:
    with served_apart(in_turn([message("Hello.")], [message("Still here.")])) as server, watched() as (watch, bus):
        agent = Agent("Greeter", model=model(server))
        first = run(agent, "hello")
        run(agent, [*first.to_input_list(), {"role": "user", "content": "hello"}])

        recorded_events = events(watch, bus)

    words = [event["text"] for event in of_kind(recorded_events, "user_message", "output")]
    assert words == ["hello", "Hello.", "hello", "Still here."]


def test_chat_completions_are_told_the_same() -> None:
    def answer(n: int, _: Asked) -> Answer:
        return completion("", call("add", {"a": 1, "b": 2}, "call_1")) if n == 0 else completion("It is 3.")

    with served_apart(answer) as server, watched() as (watch, bus):
        client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0)
        run(Agent("Counter", model=OpenAIChatCompletionsModel("chat-test", client), tools=[add]))

        recorded_events = events(watch, bus)

    assert kinds(recorded_events) == [
        *("run.started", "user_message", "model.call", "start", "success", "model.call", "output", "run.done"),
    ]  # fmt: skip
    assert recorded_events[3]["tool_call_id"] == "call_1"
    assert recorded_events[5]["usage"] == {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def test_errors_are_told() -> None:
    @function_tool(failure_error_function=None)
    def burn() -> str:
        """Fail."""
        raise ValueError("it burns")

    with served_apart(in_turn([call("burn", {}, "call_1")])) as server, watched() as (watch, bus):
        with pytest.raises(UserError):
            run(Agent("Stove", model=model(server), tools=[burn]))

        recorded_events = events(watch, bus)

    assert kinds(recorded_events)[-2:] == ["error", "run.failed"]
    assert "it burns" in recorded_events[-2]["error"]
    assert "it burns" in recorded_events[-1]["error"]


def test_model_that_fails_is_told() -> None:
    with served_apart(lambda *_: Answer(b"{}", status=500)) as server, watched() as (watch, bus):
        with pytest.raises(Exception, match="500"):
            run(Agent("Counter", model=model(server)))

        recorded_events = events(watch, bus)

    assert kinds(recorded_events) == [
        "run.started",
        "model.call",
        "run.failed",
    ]  # the SDK gives the input with an answer only


def test_guardrail_that_trips_is_told() -> None:
    @input_guardrail
    async def polite(*_: Any) -> GuardrailFunctionOutput:
        """Stop all."""
        return GuardrailFunctionOutput(None, tripwire_triggered=True)

    with served_apart(in_turn([message("Hello.")])) as server, watched() as (watch, bus):
        with pytest.raises(InputGuardrailTripwireTriggered):
            run(Agent("Greeter", model=model(server), input_guardrails=[polite]))

        recorded_events = events(watch, bus)

    assert [event["text"] for event in of_kind(recorded_events, "log")] == ["guardrail polite: triggered"]
    assert recorded_events[-1]["event"] == "run.failed"
    assert "polite" in recorded_events[-1]["error"]


def test_call_that_waits_for_an_approval_ends_once() -> None:
    @function_tool(needs_approval=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        return f"gone: {path}"

    steps = [call("wipe", {"path": "/a"}, "call_1")], [message("Done.")]
    with served_apart(in_turn(*steps)) as server, watched() as (watch, bus):
        agent = Agent("Cleaner", model=model(server), tools=[wipe])
        state = run(agent).to_state()
        assert kinds(events(watch, bus))[-1] == "run.waiting"
        state.approve(state.get_interruptions()[0])
        run(agent, state)

        recorded_events = events(watch, bus)

    steps_told = [(step["status"], step["tool_call_id"]) for step in of_kind(recorded_events, "tool_step")]
    assert steps_told == [("start", "call_1"), ("success", "call_1")]
    assert recorded_events[-1]["event"] == "run.done"


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_content_is_left_out_on_request(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", "1" if how == "flag" else "0")
    has_content = False if how == "flag" else module._is_content_wanted()
    steps = [call("add", {"a": 17, "b": 4}, "call_1")], [message("It is 21.")]
    with served_apart(in_turn(*steps)) as server, watched(has_content=has_content) as (watch, bus):
        run(Agent("Counter", model=model(server), tools=[add]), "what is 17 + 4?", run_config=RunConfig(group_id="g"))

        recorded_events = events(watch, bus)

    assert "17" not in str([event.get("args_raw") for event in recorded_events])
    assert not any(word in str(recorded_events) for word in ("17 + 4", "It is 21", "'output': 21"))
    assert [step["status"] for step in of_kind(recorded_events, "tool_step")] == ["start", "success"]
    assert sum(turn["usage"]["input_tokens"] for turn in of_kind(recorded_events, "model.call")) == 22


def test_agents_are_named_inside_the_one_that_the_token_speaks_for() -> None:
    with served_apart(in_turn([message("Hello.")])) as server, watched(agent="Desk") as (watch, bus):
        run(Agent("Greeter", model=model(server)))
        run(Agent("Desk", model=model(server)))

        recorded_events = events(watch, bus)

    assert {event["agent"] for event in recorded_events if "agent" in event} == {"Desk/Greeter", "Desk"}


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["漢", "😀", "\x1b"])
def test_long_texts_of_any_letters_are_shortened_to_what_an_event_holds(letter: str) -> None:
    @function_tool
    def echo(text: str) -> str:
        """Return it."""
        return text

    long = letter * 120_000
    steps = in_turn([call("echo", {"text": long}, "c1")], [message("Done.")])
    with served_apart(steps) as server, watched() as (watch, bus):
        run(Agent(name="Echo", model=model(server), tools=[echo]), long)
        recorded_events = events(watch, bus)

    assert watch.lost == 0
    (question,), (began, ended) = of_kind(recorded_events, "user_message"), of_kind(recorded_events, "tool_step")
    assert kinds([began, ended]) == ["start", "success"]
    assert all(text.endswith("characters)") for text in (question["text"], began["args_raw"], ended["output"]))


def test_group_that_no_topic_takes_is_a_conversation_all_the_same() -> None:
    events_ = SpanEvents()
    events_.trace("t", "x" * 300)

    assert events_.conversation_of("t").startswith("group-")
    assert events_.conversation_of("t") == module.SpanEvents(conversation="x" * 300).conversation_of("other")


class BrokenBus(InMemoryBus):
    """A bus that fails as no bus should."""

    def publish(self, topic: str, message: BusMessage) -> str:
        """Fail."""
        raise RuntimeError("no bus")


class RefusingBus(InMemoryBus):
    """A bus that takes nothing."""

    def publish(self, topic: str, message: BusMessage) -> str:
        """Refuse."""
        raise Refused("no such agent")


@pytest.mark.parametrize("bus", [BrokenBus(), RefusingBus()])
def test_program_goes_on_whatever_fails_here(bus: InMemoryBus, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "switchboard")
    with served_apart(in_turn([message("Hello.")])) as server, watched() as (watch, _):
        watch._bus = bus
        answers = [run(Agent("Greeter", model=model(server))).final_output for _ in range(3)]
        assert watch.flush(LONGEST_WAIT)

    assert answers == ["Hello."] * 3
    assert len([record for record in caplog.records if record.name == "switchboard"]) == 1


def test_span_that_cannot_be_read_is_contained(caplog: pytest.LogCaptureFixture) -> None:
    with watched() as (watch, _):
        for _ in range(5):
            watch.on_span_end(object())
            watch.on_span_start(None)

    assert len({record.exc_text for record in caplog.records}) == len(caplog.records) == 2


class HeldBus(InMemoryBus):
    """A bus that publishes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.is_entered, self.is_free = threading.Event(), threading.Event()

    def publish(self, topic: str, message: BusMessage) -> str:
        """Wait."""
        self.is_entered.set()
        assert self.is_free.wait(LONGEST_WAIT)
        return super().publish(topic, message)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few spans find room."""
    monkeypatch.setattr(module, "MAX_SPANS", 20)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_what_finds_no_room_is_counted_and_told() -> None:
    bus = HeldBus()
    with served_apart(in_turn([message("Hello.")])) as server, watched() as (watch, _):
        watch._bus = bus
        agent = Agent("Greeter", model=model(server))
        run(agent)
        assert bus.is_entered.wait(LONGEST_WAIT)
        for _ in range(20):
            run(agent)
        assert len(watch._facts) <= 40
        lost = watch.lost
        bus.is_free.set()

        recorded_events = events(watch, bus)

    assert lost > 0
    assert sum(gap["lost"] for gap in of_kind(recorded_events, "record.gap")) == lost


def test_second_line_changes_nothing_and_a_program_without_a_server_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("SWITCHBOARD_URL", "SWITCHBOARD_TOKEN", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "_current", None)
    registered: list[Any] = []
    monkeypatch.setattr("agents.add_trace_processor", registered.append)

    first = watch_agents()

    assert watch_agents() is first
    assert registered == [first]
    assert "agents are not recorded: no bus configured" in caplog.text
