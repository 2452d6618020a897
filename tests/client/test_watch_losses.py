"""What `watch_agents` loses: what a bus of the program's own fails for, and nothing that a spool can hold."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

from agents import Agent, Runner
from agents.tracing import agent_span, trace

from switchboard import BusMessage, HttpBus, InMemoryBus
from tests.support.live import Server
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


def test_events_wait_in_the_spool_while_the_token_is_revoked(served: Server, served_token: str, tmp_path: Path) -> None:
    url, conversation = f"http://127.0.0.1:{served.port}", uuid4().hex
    revoked = HttpBus(url, "sb_revoked", spool_dir=tmp_path)
    with watched(conversation=conversation) as (watch, _):
        watch._bus = revoked
        with trace("run"), agent_span("Greeter"):
            pass
        assert watch.flush(LONGEST_WAIT)
        assert watch.lost == 0
    waiting = revoked.waiting
    revoked.close(0)

    with HttpBus(url, served_token, spool_dir=tmp_path) as bus:
        assert bus.flush(LONGEST_WAIT)

    address = f"/api/v1/conversations/{conversation}/events"
    kinds = [item["kind"] for item in served.request("GET", address, token=served_token)[1]["items"]]
    assert (len(kinds), kinds[0]) == (waiting, "run.started")
