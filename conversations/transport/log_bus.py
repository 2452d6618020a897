"""The record as a bus (§3.2): our own processes publish and read with it. `switchboard.Bus` defines the methods."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from conversations.core.errors import IdReused, Invalid
from conversations.core.principals import Principal
from conversations.events import commit_listeners, log, payload
from conversations.events.log.records import Stored
from conversations.transport import topic_reads
from switchboard.bus import MAX_READ, BusMessage

POLL_EVERY_S = 1.0  # while blocked: heals a lost notification


class LogBus:
    """The bus of our own processes: the log, and posts. Reading `stream:*` reads the log; ids are event numbers."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def publish(self, topic: str, message: BusMessage) -> str:
        """See `Bus`. Returns after the commit. Raises Invalid for a payload without a required conversation."""
        payload.check_topic(topic)
        body = msgspec.json.encode(message.payload)
        event = log.from_bus(topic, message.id, body.decode(), payload.parse(body), self._principal)
        payload.check_named(topic, event.conversation)
        (stored,) = log.append([event])
        if stored.clashes:
            raise IdReused("this id was already published with a different payload", field="id")
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
            position = _place(topic, last_id, 0)
            while True:
                news.clear()
                messages = _after(topic, position, limit)
                left = deadline - time.monotonic()
                if messages or left <= 0:
                    return messages
                news.wait(min(left, POLL_EVERY_S))


def _check(topic: str, limit: int) -> None:
    payload.check_topic(topic)
    if not 1 <= limit <= MAX_READ:
        raise Invalid(f"must be 1 to {MAX_READ}; got {limit}", field="limit")


def _place(topic: str, last_id: str | None, limit: int) -> int:
    """Return the position to read after; without an id, the one before the newest `limit` messages."""
    return topic_reads.place_before_newest(topic, limit) if last_id is None else topic_reads.place_of(topic, last_id)


def _after(topic: str, position: int, limit: int) -> list[BusMessage]:
    return [
        BusMessage(topic, payload.decoded(body.encode()), id_)
        for id_, body in topic_reads.after(topic, position, limit)
    ]


@contextmanager
def _listening() -> Iterator[threading.Event]:
    """Yield an event that is set by every commit of this process, and by those of others that it is notified of."""
    news = threading.Event()

    def on_stored(_: Sequence[Stored] | Mapping[str, int]) -> None:
        news.set()

    stops = (commit_listeners.on_committed(on_stored), commit_listeners.on_remote_heads(on_stored))
    try:
        yield news
    finally:
        for stop in stops:
            stop()
