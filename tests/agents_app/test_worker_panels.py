"""A tool that runs several agents at once: each says its own words and calls its own tools."""

import asyncio
import json
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams import nested_run
from agents_app.teams.definition import Team
from conversations.models import Event, Run, ToolCall, Turn
from tests.support.agents_running import ended_runs, event_bodies, send_message, working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
NAMES = ("Ann", "Bob")


class InTurn(ScriptedModel):
    """A model that begins to answer when the other ones have been asked, too."""

    def __init__(self, barrier: asyncio.Barrier, steps: Any) -> None:
        super().__init__(steps)
        self._barrier = barrier

    async def stream_response(self, *args: Any, **named: Any) -> Any:
        await self._barrier.wait()
        async for event in super().stream_response(*args, **named):
            yield event


def panel(*steps: Any) -> Team:
    """Make a team whose tool runs Ann and Bob at once; `steps` makes the script of each from the name."""

    @function_tool
    async def ask_both(context: RunContextWrapper[Any]) -> str:
        """Ask both."""
        barrier = asyncio.Barrier(len(NAMES))
        agents = [
            Agent[Any](name=name, model=InTurn(barrier, [step(name) for step in steps]), tools=[look]) for name in NAMES
        ]
        results = await asyncio.gather(*(nested_run(context, agent, "hello") for agent in agents))
        return " ".join(str(result.final_output) for result in results)

    @function_tool
    async def look(at: str) -> str:
        """Look."""
        return f"seen {at}"

    script = [[function_call("ask_both", {}, call_id="p")], [assistant_message("Done.")]]
    clerk = Agent[Any](name="Clerk", model=ScriptedModel(script), tools=[ask_both])
    return Team(name="test", agents=[clerk], entry=["Clerk"])


def words_of(name: str) -> str:
    return f"I am {name} speaking."


def run_panel(*steps: Any) -> dict[str, Any]:
    """Run it; return the end of the outer call."""
    with working(panel(*steps)):
        send_message()
        ended_runs()
    assert Run.objects.get().status == "done"
    return event_bodies("tool_step")[-1]


def test_agents_that_one_tool_runs_at_once_say_their_own_words():
    over = run_panel(lambda name: [assistant_message(words_of(name))])

    assert over["output"] == " ".join(map(words_of, NAMES))
    inner = [body for body in event_bodies("output") if body.get("parent_call")]
    assert {body["agent"]: body["text"] for body in inner} == {name: words_of(name) for name in NAMES}
    assert {body["parent_call"] for body in inner} == {over["tool_call"]}
    assert len({body["turn"] for body in inner}) == 2
    tokens = [
        json.loads(body) for body in Event.objects.filter(kind="token").order_by("seq").values_list("body", flat=True)
    ]
    for name in NAMES:
        assert "".join(token["text"] for token in tokens if token["agent"] == name) == words_of(name)
    assert sorted(Turn.objects.values_list("agent", flat=True)) == ["Ann", "Bob", "Clerk", "Clerk"]


def test_calls_that_two_agents_make_at_once_under_the_same_id_are_two_calls():
    run_panel(
        lambda name: [function_call("look", {"at": name}, call_id="same")],
        lambda name: [assistant_message(words_of(name))],
    )

    calls = ToolCall.objects.filter(name="look")
    ends = [body for body in event_bodies("tool_step") if body["name"] == "look" and body["status"] != "start"]
    assert sorted(calls.values_list("agent", "status")) == [("Ann", "done"), ("Bob", "done")]
    assert {body["agent"]: body["output"] for body in ends} == {name: f"seen {name}" for name in NAMES}
