"""`watch`: new messages in order, none twice, none skipped, over interruptions."""

import threading
from itertools import islice

import pytest

from switchboard import BusMessage, InMemoryBus, UnknownPosition, Unreachable, watch

TOPIC = "chat:c1"


class Flaky(InMemoryBus):
    """A bus that is away for each second read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """Fail, or read one message."""
        self.reads += 1
        if self.reads % 2:
            raise Unreachable("away")
        return super().read_blocking(topic, last_id, 1, block_ms)


def publish(bus: InMemoryBus, *numbers: int) -> list[str]:
    """Publish some."""
    return [bus.publish(TOPIC, BusMessage(TOPIC, {"n": n})) for n in numbers]


def test_watch_goes_on_after_a_message() -> None:
    bus = InMemoryBus()
    ids = publish(bus, 1, 2, 3)

    assert [got.payload["n"] for got in islice(watch(TOPIC, after=ids[0], bus=bus), 2)] == [2, 3]


def test_watch_starts_with_what_is_new() -> None:
    bus = InMemoryBus()
    publish(bus, 1)
    later = threading.Timer(0.1, publish, (bus, 2, 3))
    later.start()

    assert [got.payload["n"] for got in islice(watch(TOPIC, bus=bus), 2)] == [2, 3]
    later.join()


def test_watch_of_an_empty_topic_has_the_first_message() -> None:
    bus = InMemoryBus()
    later = threading.Timer(0.1, publish, (bus, 1, 2))
    later.start()

    assert [got.payload["n"] for got in islice(watch(TOPIC, bus=bus), 2)] == [1, 2]
    later.join()


def test_watch_survives_a_bus_that_is_away_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    bus = Flaky()
    ids = publish(bus, *range(4))

    assert [got.payload["n"] for got in islice(watch(TOPIC, after=ids[0], bus=bus), 3)] == [1, 2, 3]
    assert "retrying: " in caplog.text


def test_place_that_is_gone_ends_the_watch() -> None:
    bus = InMemoryBus()
    publish(bus, 1)

    with pytest.raises(UnknownPosition):
        next(watch(TOPIC, after="never", bus=bus))
