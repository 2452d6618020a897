"""The Town Hall on an OpenAI-compatible server, a process of its own, by both APIs: the demo model's own path."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from agents import RunConfig, Runner

from agents_app.providers import ModelConfig, Provider
from agents_app.town_hall import TEAM
from agents_app.town_hall.context import TownHallContext


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "tests.demo_provider"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait(10)
    process.stdout.close()


async def report(config: ModelConfig) -> tuple[list[str], str, TownHallContext, int]:
    """Report an incident and approve it; answer the calls, the answer, the context and the tokens used."""
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


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_report_goes_its_whole_way(server: str, api: str) -> None:
    calls, answer, context, tokens = asyncio.run(report(ModelConfig(base_url=server, model=f"{api}:rules")))
    expected = asyncio.run(report(ModelConfig(demo_pace_s=0)))

    assert calls == expected[0]
    assert calls[-1] == "transfer_to_dialogue"
    assert context.incident is not None
    assert (answer, context) == (expected[1], expected[2])
    assert tokens > 0
