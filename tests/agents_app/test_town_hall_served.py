"""The Town Hall on an OpenAI-compatible server, a process of its own, by both APIs: the demo model's own path."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import RunConfig, Runner

from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.town_hall import TEAM
from agents_app.town_hall.context import TownHallContext
from conversations.models import Run, ToolCall
from conversations.runs.approvals import decide
from tests.support import programs
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import person
from tests.support.live import until


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with programs.printing(["-m", "tests.support.demo_provider"]) as (_, output):
        yield output.readline().strip()


async def report(config: ModelConfig) -> tuple[list[str], str, TownHallContext, int]:
    """Report an incident and approve it; return the calls, the answer, the context and the tokens used."""
    provider, context, calls = Provider(config), TownHallContext(), []
    settings: dict[str, Any] = {"run_config": RunConfig(model_provider=provider), "max_turns": 20}
    result = Runner.run_streamed(TEAM.agent("Dialogue"), "A pothole on Mill Road 5", context=context, **settings)
    for _ in range(2):
        items = [event async for event in result.stream_events() if event.type == "run_item_stream_event"]
        calls += [e.item.raw_item.name for e in items if e.name in ("tool_called", "handoff_requested")]
        if not result.interruptions:
            break
        state = result.to_state()
        state.approve(state.get_interruptions()[0])
        result = Runner.run_streamed(TEAM.agent("Dialogue"), state, **settings)
    await provider.aclose()
    return calls, str(result.final_output), context, result.context_wrapper.usage.input_tokens


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_report_goes_its_whole_way(server: str, api: str) -> None:
    calls, answer, context, tokens = asyncio.run(report(ModelConfig(base_url=server, model=f"{api}:rules")))
    expected = asyncio.run(report(ModelConfig(demo_pace_s=0)))

    assert calls == expected[0]
    assert calls[-1] == "transfer_to_dialogue"
    assert context.incident is not None
    assert (answer, context) == (expected[1], expected[2])
    assert tokens > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("api", [pytest.param("chat", marks=pytest.mark.thorough), "responses"])
def test_a_citizens_report_goes_its_whole_way_on_the_worker(server: str, api: str) -> None:
    config = ModelConfig(api_key="sk-served", base_url=server, model=f"{api}:rules")
    with working(TEAM, config=config):
        send_message("A pothole on Mill Road 5, two cyclists fell", to="agent:Dialogue")
        (run,) = ended_runs()
        assert (run.status, run.reason) == ("waiting", "approval")
        (request,) = event_bodies("approval.requested")
        decide.decide(person("april", "approver"), request["approval_id"], "approve")
        (run,) = until(lambda: Run.objects.filter(status="done"), what="the run to be done")

    calls = {call.name: call for call in ToolCall.objects.order_by("called_seq")}
    assert [(h["from_agent"], h["to_agent"]) for h in event_bodies("agent.handoff")] == [
        ("Dialogue", "Triage"),
        ("Triage", "Conversation Format Coordinator"),
        ("Conversation Format Coordinator", "Dialogue"),
    ]
    assert list(calls) == ["incident_formatter_tool", "file_incident"]
    assert {call.status for call in calls.values()} == {"done"}
    form, answer = event_bodies("output")  # the desks between are silent
    assert (form["agent"], form["parent_call"]) == ("Incident Formatter", calls["incident_formatter_tool"].id)
    assert json.loads(form["text"])["location"] == request["args"]["location"]
    reference = event_bodies("tool_step")[-1]["output"]["reference"]
    assert (answer["agent"], answer["final"], run.attempt) == ("Dialogue", True, 2)
    assert reference.startswith("TH-")
    assert reference in answer["text"]
    assert {(turn["model"], turn["demo"]) for turn in event_bodies("model.turn")} == {("rules", False)}
    assert all(turn["usage"]["total_tokens"] > 0 for turn in event_bodies("model.turn"))
