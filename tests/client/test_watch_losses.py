"""What `watch_agents` loses when a bus of the program's own fails: that message, and it is counted."""

from __future__ import annotations

import asyncio

from agents import Agent, Runner

from switchboard import BusMessage, InMemoryBus
from tests.support.provider_answers import message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model, payloads, watched

LONGEST_WAIT = 60.0


class ForgetfulBus(InMemoryBus):
    """A bus that fails for one type of event, as no bus should."""

    def publish(self, topic: str, message: BusMessage) -> str:
        """Fail for a model's call."""
        if message.payload["event"] == "model.call":
            raise RuntimeError("no bus")
        return super().publish(topic, message)


def test_event_that_a_bus_fails_for_costs_itself_alone_and_is_counted() -> None:
    bus = ForgetfulBus()
    with served_apart(in_turn([message("Hello.")])) as server, watched(conversation="g") as (watch, _):
        watch._bus = bus
        asyncio.run(Runner.run(Agent("Greeter", model=model(server)), "hi"))
        assert watch.flush(LONGEST_WAIT)

    recorded = [event["event"] for event in payloads(bus.read("stream:g"))]
    assert recorded == ["run.started", "user_message", "output", "run.done"]
    assert watch.lost == 1
