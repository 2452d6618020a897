"""`flush` and approvals of a program that never pauses: what is published later is not waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from switchboard import BusMessage, HttpBus, InMemoryBus, Unreachable
from switchboard.agent_watch import AgentWatch
from switchboard.api import Api
from switchboard.span_events import SpanEvents
from switchboard.span_facts import SpanFacts
from tests.support.live import until

TOPIC = "stream:c"
NOWHERE = "http://127.0.0.1:9"


def begun() -> SpanFacts:
    """Make the start of an agent's span."""
    return SpanFacts(False, "agent", "trace", uuid4().hex, None, time.time(), SimpleNamespace(name="A"))


class EndlessBus(InMemoryBus):
    """A bus of a program in which another span begins whenever one is published."""

    watch: AgentWatch
    is_over = False

    def publish(self, topic: str, message: BusMessage) -> str:
        """Publish, while the program goes on."""
        if not self.is_over:
            self.watch._put(begun(), 200)
        return super().publish(topic, message)


def test_flush_of_a_watch_waits_for_what_was_recorded_before() -> None:
    bus = EndlessBus()
    bus.watch = AgentWatch(bus, SpanEvents())
    bus.watch._put(begun(), 200)

    assert bus.watch.flush()
    assert bus.read("stream:trace")
    bus.is_over = True


def test_flush_of_a_bus_waits_for_what_was_published_before(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, is_over, numbers = HttpBus(NOWHERE, "t"), threading.Event(), count()

    def publish(_: Api, lines: Sequence[bytes]) -> list[None]:
        if not is_over.is_set():
            publish_later()
            until(lambda: bus.waiting > len(lines), what="another message")
        return [None] * len(lines)

    def publish_later() -> None:
        message = BusMessage(TOPIC, {"n": next(numbers)})
        threading.Thread(target=bus.publish, args=(TOPIC, message), daemon=True).start()

    monkeypatch.setattr(Api, "publish", publish)
    publish_later()
    until(lambda: bus.waiting, what="the first message")

    assert bus.flush()
    is_over.set()
    bus.close()


def test_what_was_spooled_is_delivered_though_more_is_spooled_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, is_over, numbers = HttpBus(NOWHERE, "t", spool_dir=tmp_path), threading.Event(), count()

    def publish(_: Api, lines: Sequence[bytes]) -> list[None]:
        raise Unreachable("away")

    def publish_kept(_: Api, lines: Sequence[bytes]) -> list[None]:
        if not is_over.is_set():
            bus.publish(TOPIC, BusMessage(TOPIC, {"n": next(numbers)}))
        return [None] * len(lines)

    monkeypatch.setattr(Api, "publish", publish)
    monkeypatch.setattr(Api, "publish_kept", publish_kept)
    bus.publish(TOPIC, BusMessage(TOPIC, {"n": "first"}))

    bus.require_delivered(5)
    is_over.set()
    assert bus.flush()
    bus.close()
