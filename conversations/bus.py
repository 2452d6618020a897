"""The record as a bus (design 3.2): what our own processes publish with and read by. `switchboard.Bus` says how."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from django.db import connection

from conversations import doorbell, envelopes, log
from conversations.errors import IdReused, Invalid, UnknownPosition
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
        return self._after(topic, self._place(topic, last_id, limit), limit)

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """See `Bus`."""
        _check(topic, limit)
        deadline = time.monotonic() + block_ms / 1000
        with _listening() as news:
            place = self._place(topic, last_id, 0)
            while True:
                news.clear()
                found = self._after(topic, place, limit)
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                news.wait(min(left, LOOK_EVERY))

    def _place(self, topic: str, last_id: str | None, limit: int) -> int:
        """Answer the seq (streams) or the post's row to read after; None: so that the newest `limit` come."""
        prefix, _, suffix = topic.partition(":")
        if prefix == "stream":
            return max(0, log.head(suffix) - limit) if last_id is None else _seq_of(suffix, last_id)
        return _post_before(topic, limit) if last_id is None else _post_of(topic, last_id)

    def _after(self, topic: str, place: int, limit: int) -> list[BusMessage]:
        prefix, _, suffix = topic.partition(":")
        if prefix == "stream":
            return [_message(topic, str(e.seq), e.body) for e in log.read_after(suffix, place, limit)]
        rows = _rows(
            "SELECT p.bus_id,COALESCE(p.body,e.body) FROM conversations_post p LEFT JOIN conversations_event e"
            " ON e.conversation_id=p.conversation_id AND e.seq=p.event_seq"
            " WHERE p.topic=%s AND p.id>%s ORDER BY p.id LIMIT %s",
            [topic, place, limit],
        )
        return [_message(topic, bus_id, body) for bus_id, body in rows]


def _check(topic: str, limit: int) -> None:
    envelopes.check_topic(topic)
    if not 1 <= limit <= MAX_READ:
        raise Invalid(f"expected 1 to {MAX_READ}; got {limit}", field="limit")


def _message(topic: str, id_: str, body: str) -> BusMessage:
    return BusMessage(topic=topic, payload=msgspec.json.decode(body), id=id_)


def _seq_of(key: str, last_id: str) -> int:
    """Find an event by its seq, else by the id it was published under."""
    if last_id.isascii() and last_id.isdigit() and len(last_id) < 19:
        seq = int(last_id)
        if seq <= log.head(key):
            return seq
        raise UnknownPosition(f"{key!r} has no event {seq}", field="last_id")
    rows = _rows(
        "SELECT e.seq FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
        " WHERE c.key=%s AND e.event_id=%s",
        [key, last_id],
    ) or _rows(
        "SELECT event_seq FROM conversations_post WHERE topic=%s AND bus_id=%s AND event_seq IS NOT NULL",
        [f"stream:{key}", last_id],
    )
    if not rows:
        raise UnknownPosition(f"{key!r} has no event {last_id!r}", field="last_id")
    return int(rows[0][0])


def _post_of(topic: str, last_id: str) -> int:
    rows = _rows("SELECT id FROM conversations_post WHERE topic=%s AND bus_id=%s", [topic, last_id])
    if not rows:
        raise UnknownPosition(f"no message {last_id!r} on {topic!r}", field="last_id")
    return int(rows[0][0])


def _post_before(topic: str, limit: int) -> int:
    """Answer the post right before the newest `limit`."""
    rows = _rows("SELECT id FROM conversations_post WHERE topic=%s ORDER BY id DESC LIMIT 1 OFFSET %s", [topic, limit])
    return int(rows[0][0]) if rows else 0


def _rows(sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


@contextmanager
def _listening() -> Iterator[threading.Event]:
    """Be woken by every commit of this process."""
    news = threading.Event()

    def rung(_: Sequence[Stored]) -> None:
        news.set()

    stop: Callable[[], None] = doorbell.on_ring(rung)
    try:
        yield news
    finally:
        stop()
