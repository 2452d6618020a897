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


class Bursting(InMemoryBus):
    """A bus on which more come at once than one read returns: while a reader waits, or while the bus is away."""

    def __init__(self, *, while_away: bool) -> None:
        super().__init__()
        self._is_away, self._has_burst = while_away, False

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """Have them come at the first wait; in the reader's place, the wait ends with the first of them."""
        if self._has_burst:
            return super().read_blocking(topic, last_id, limit, block_ms)
        self._has_burst = True
        publish(self, *range(1, BURST + 1))
        if self._is_away:
            raise Unreachable("away")
        return [self._topics[topic][0]]


BURST = 1_200


def test_watch_of_an_empty_topic_skips_nothing_of_a_burst() -> None:
    messages = watch(TOPIC, bus=Bursting(while_away=False))

    assert next(messages).payload["n"] == 1
    assert [got.payload["n"] for got in islice(messages, BURST - 1)] == list(range(2, BURST + 1))


def test_watch_of_an_empty_topic_ends_where_it_would_skip_messages() -> None:
    with pytest.raises(UnknownPosition, match="more than 500 messages came on chat:c1, which was empty, while the bus"):
        next(watch(TOPIC, bus=Bursting(while_away=True)))
