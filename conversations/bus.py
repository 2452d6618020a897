"""The record as a bus (design 3.2): what our own processes publish with and read by. `switchboard.Bus` says how."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from conversations import doorbell, envelopes, log, topics
from conversations.errors import IdReused, Invalid
from conversations.log.events import Stored
from conversations.principals import Principal
from switchboard.bus import MAX_READ, BusMessage

LOOK_EVERY = 1.0  # seconds, while blocked: heals a lost doorbell


class LogBus:
    """What our own processes publish with: the log, and posts. Reading `stream:*` pages the log, ids are seqs."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def publish(self, topic: str, message: BusMessage) -> str:
        """See `Bus`. Returns after the commit. Raises `Invalid` where a payload names no conversation and must."""
        envelopes.check_topic(topic)
        body = msgspec.json.encode(message.payload)
        event = log.of_payload(topic, message.id, body.decode(), envelopes.read(body), self._principal)
        envelopes.check_named(topic, event.conversation)
        (stored,) = log.append([event])
        if stored.clashes:
            raise IdReused("this id was published before with another payload", field="id")
        return message.id

    def read(self, topic: str, last_id: str | None = None, limit: int = 100) -> list[BusMessage]:
        """See `Bus`."""
        _check(topic, limit)
        return _after(topic, _place(topic, last_id, limit), limit)

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """See `Bus`."""
        _check(topic, limit)
        deadline = time.monotonic() + block_ms / 1000
        with _listening() as news:
            place = _place(topic, last_id, 0)
            while True:
                news.clear()
                found = _after(topic, place, limit)
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                news.wait(min(left, LOOK_EVERY))


def _check(topic: str, limit: int) -> None:
    envelopes.check_topic(topic)
    if not 1 <= limit <= MAX_READ:
        raise Invalid(f"expected 1 to {MAX_READ}; got {limit}", field="limit")


def _place(topic: str, last_id: str | None, limit: int) -> int:
    """Answer where to read after; without an id, so that the newest `limit` come."""
    return topics.place_before_newest(topic, limit) if last_id is None else topics.place_of(topic, last_id)


def _after(topic: str, place: int, limit: int) -> list[BusMessage]:
    return [BusMessage(topic, msgspec.json.decode(body), id_) for id_, body in topics.after(topic, place, limit)]


@contextmanager
def _listening() -> Iterator[threading.Event]:
    """Be woken by every commit of this process, and by those of others that it hears of."""
    news = threading.Event()

    def rung(_: Sequence[Stored] | Mapping[str, int]) -> None:
        news.set()

    stops = (doorbell.on_ring(rung), doorbell.on_heard(rung))
    try:
        yield news
    finally:
        for stop in stops:
            stop()
