"""Runs inside runs: hooks, streams, context and usage of the call that caused them; and none of it without a worker."""

import asyncio
from typing import Any

import pytest
from agents import Agent, RunConfig, RunContextWrapper, RunHooks, Runner, RunState, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app import nesting
from agents_app.nesting import RunScope, agent_tool, current, entered, nested_run


class Noted(RunHooks[Any]):
    """Notes (our id of the causing call, what, which agent or tool)."""

    def __init__(self) -> None:
        self.notes: list[tuple[str | None, str, str]] = []

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self._note("agent", agent.name)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self._note("start", tool.name)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self._note("end", tool.name)

    def _note(self, what: str, name: str) -> None:
        scope = current()
        self.notes.append((scope.parent_call if scope else None, what, name))


@function_tool
def look(ctx: RunContextWrapper[Any]) -> str:
    """Look."""
    ctx.context["looked"] = True
    return "seen"


def house(by: str) -> Agent[Any]:
    """Make an agent whose tool `dig` runs another agent, whose tool is `look`."""
    inner = Agent[Any](
        name="Inner",
        tools=[look],
        model=ScriptedModel([[function_call("look", {}, call_id="in-1")], [assistant_message("found")]]),
    )

    @function_tool(name_override="dig")
    async def dig(ctx: RunContextWrapper[Any], words: str) -> str:
        result = await nested_run(ctx, inner, words)
        return str(result.final_output)

    arguments = {"words": "go"} if by == "nested_run" else {"input": "go"}
    return Agent(
        name="Outer",
        tools=[dig if by == "nested_run" else agent_tool(inner, "dig", "Dig.")],
        model=ScriptedModel([[function_call("dig", arguments, call_id="out-1")], [assistant_message("done")]]),
    )


both = pytest.mark.parametrize("by", ["nested_run", "agent_tool"])


@both
def test_inner_calls_are_told_under_the_call_that_caused_them(by: str) -> None:
    hooks = Noted()

    with entered(RunScope("c", "r", hooks=hooks, our_call=lambda call_id: f"ours-{call_id}")):
        asyncio.run(Runner.run(house(by), "go", context={}, hooks=hooks))

    assert hooks.notes == [
        (None, "agent", "Outer"),
        (None, "start", "dig"),
        ("ours-out-1", "agent", "Inner"),
        ("ours-out-1", "start", "look"),
        ("ours-out-1", "end", "look"),
        (None, "end", "dig"),
    ]


@both
def test_inner_answers_stream_when_somebody_listens(by: str) -> None:
    heard: list[tuple[str | None, str]] = []

    async def on_event(event: Any) -> None:
        scope = current()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            heard.append((scope.parent_call if scope else None, event.data.delta))

    with entered(RunScope("c", "r", on_event=on_event)):
        asyncio.run(Runner.run(house(by), "go", context={}))

    assert heard == [("out-1", "found")]


@both
def test_without_a_worker_it_is_a_plain_run(by: str) -> None:
    context: dict[str, bool] = {}

    result = asyncio.run(Runner.run(house(by), "go", context=context))

    assert (result.final_output, context) == ("done", {"looked": True})
    assert result.context_wrapper.usage.requests == 4  # the inner run's are counted


def test_the_scopes_models_are_used_inside() -> None:
    inner = Agent[Any](name="Inner")

    @function_tool
    async def dig(ctx: RunContextWrapper[Any]) -> str:
        return str((await nested_run(ctx, inner, "go")).final_output)

    config = RunConfig(
        model=ScriptedModel(
            [[function_call("dig", {}, call_id="c")], [assistant_message("in")], [assistant_message("out")]]
        )
    )

    result = asyncio.run(Runner.run(Agent(name="Outer", tools=[dig]), "go", run_config=config))

    assert result.final_output == "out"


def test_a_gated_tool_inside_a_nested_run_is_refused_with_the_reason() -> None:
    @function_tool(needs_approval=True)
    def gated() -> str:
        return "never"

    inner = Agent[Any](name="Inner", tools=[gated], model=ScriptedModel([[function_call("gated", {}, call_id="c")]]))

    @function_tool(failure_error_function=None)
    async def dig(ctx: RunContextWrapper[Any]) -> str:
        return str((await nested_run(ctx, inner, "go")).final_output)

    outer = Agent[Any](name="Outer", tools=[dig], model=ScriptedModel([[function_call("dig", {}, call_id="c")]]))

    with pytest.raises(Exception, match=r"Inner, run inside a tool, asks for an approval \(gated\)"):
        asyncio.run(Runner.run(outer, "go"))


def test_events_of_a_team_are_told_to_the_worker_or_to_nobody() -> None:
    told: list[dict[str, Any]] = []

    nesting.tell({"event": "a.b"})
    with entered(RunScope("c", "r", tell=told.append)):
        nesting.tell({"event": "a.c"})

    assert told == [{"event": "a.c"}]


def test_an_approval_inside_an_agent_tool_stops_the_outer_run_and_is_taken_up_from_text() -> None:
    ran: list[str] = []

    @function_tool(needs_approval=True)
    def gated() -> str:
        scope = current()
        ran.append(str(scope and scope.parent_call))
        return "opened"

    def outer(inner_steps: list[Any], steps: list[Any]) -> Agent[Any]:
        inner = Agent[Any](name="Inner", tools=[gated], model=ScriptedModel(inner_steps))
        return Agent(name="Outer", tools=[agent_tool(inner, "dig", "Dig.")], model=ScriptedModel(steps))

    async def stop() -> str:
        inner_steps = [[function_call("gated", {}, call_id="in-1")]]
        before = outer(inner_steps, [[function_call("dig", {"input": "go"}, call_id="out-1")]])
        result = await Runner.run(before, "go", context={})
        assert [item.agent.name for item in result.interruptions] == ["Inner"]
        return result.to_state().to_string(strict_context=True)

    async def resume(text: str) -> Any:
        after = outer([[assistant_message("inside done")]], [[assistant_message("done")]])
        state = await RunState.from_string(after, text, strict_context=True)
        state.approve(state.get_interruptions()[0])
        return (await Runner.run(after, state)).final_output

    with entered(RunScope("c", "r")):
        text = asyncio.run(stop())
        assert ran == []
        assert asyncio.run(resume(text)) == "done"

    assert ran == ["out-1"]
