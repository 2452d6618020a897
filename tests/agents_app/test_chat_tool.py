"""`chat_send` as the agents' tool: the conversation, the sender and the hop come from the run, not from the model."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.run_scope import RunScope, enter_scope
from agents_app.teams.chat_tool import chat_send
from agents_app.town_hall import TEAM
from agents_app.town_hall.context import TownHallContext
from switchboard import InMemoryBus, set_bus_for_testing


@pytest.fixture
def bus() -> Iterator[InMemoryBus]:
    made = InMemoryBus()
    set_bus_for_testing(made)
    yield made
    set_bus_for_testing(None)


def call(arguments: dict[str, Any], context: Any = None) -> Any:
    """Have an agent called Sender call the tool; return what the model is told."""
    model = ScriptedModel([[function_call("chat_send", arguments, call_id="c1")], [assistant_message("ok")]])
    result = asyncio.run(Runner.run(Agent(name="Sender", tools=[chat_send], model=model), "go", context=context))
    return next(item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output")


def test_it_speaks_in_the_runs_conversation_as_the_running_agent(bus: InMemoryBus) -> None:
    with enter_scope(RunScope("conv-7", "run-1", message_metadata={"hop": 3})):
        result = call({"recipient": "agent:Bob", "content": " Hello. "}, TownHallContext(conversation_id="another"))

    sent = bus.read("chat:Bob")[0].payload
    assert json.loads(result)["published_to"] == ["chat:conv-7", "chat:Bob"]
    assert (sent["conversation_id"], sent["sender"], sent["content"]) == ("conv-7", "agent:Sender", "Hello.")
    assert sent["metadata"]["hop"] == 4


@pytest.mark.parametrize("context", [TownHallContext(conversation_id="conv-8"), {"conversation_id": "conv-8"}])
def test_without_a_worker_the_conversation_is_the_contexts(bus: InMemoryBus, context: Any) -> None:
    call({"recipient": "agent:Bob", "content": "Hello."}, context)

    assert bus.read("chat:conv-8")[0].payload["recipient"] == "agent:Bob"


@pytest.mark.parametrize(
    "arguments", [{"recipient": "agent:", "content": "x"}, {"recipient": "chat:c", "content": " "}]
)
def test_what_the_core_refuses_is_not_sent(bus: InMemoryBus, arguments: dict[str, Any]) -> None:
    result = call(arguments, {"conversation_id": "c"})

    assert "error" in result.lower()
    assert bus.read("chat:c") == []


def test_the_model_never_sees_the_context_as_an_argument() -> None:
    assert list(chat_send.params_json_schema["properties"]) == ["recipient", "content", "conversation_id"]


def test_dialogue_passes_a_message_on_when_it_is_asked_to(bus: InMemoryBus) -> None:
    config = RunConfig(model_provider=Provider(ModelConfig(demo_pace_s=0)))
    context = TownHallContext(conversation_id="conv-9")

    result = asyncio.run(
        Runner.run(TEAM.agent("Dialogue"), "tell agent:Bob that the road is open", context=context, run_config=config)
    )

    assert bus.read("chat:Bob")[0].payload["content"] == "the road is open"
    assert result.final_output == "I passed that on."
