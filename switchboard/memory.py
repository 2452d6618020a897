"""A bus in this process's memory, for tests of agents."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace

from switchboard import topics
from switchboard.bus import BusMessage, check_read, compact
from switchboard.errors import IdReused, UnknownPosition


class InMemoryBus:
    """Topics in a dictionary. An id published twice on a topic is one message; with another payload `IdReused`."""

    def __init__(self) -> None:
        self._topics: dict[str, list[BusMessage]] = {}
        self._news = threading.Condition()

    def publish(self, topic: str, message: BusMessage) -> str:
        """See `Bus`."""
        topics.check(topic)
        stored = replace(message, topic=topic, payload=json.loads(compact(message.payload)))  # as any wire carries it
        with self._news:
            messages = self._topics.setdefault(topic, [])
            existing = next((m for m in messages if m.id == message.id), None)
            if existing is None:
                messages.append(stored)
                self._news.notify_all()
            elif existing.payload != stored.payload:
                raise IdReused("this id was already published with a different payload", field="id")
        return message.id

    def read(self, topic: str, last_id: str | None = None, limit: int = 100) -> list[BusMessage]:
        """See `Bus`."""
        check_read(topic, limit)
        with self._news:
            messages = self._topics.get(topic, [])
            start = max(0, len(messages) - limit) if last_id is None else _after(messages, last_id)
            return messages[start : start + limit]

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """See `Bus`."""
        check_read(topic, limit)
        with self._news:
            messages = self._topics.setdefault(topic, [])
            start = len(messages) if last_id is None else _after(messages, last_id)
            self._news.wait_for(lambda: len(messages) > start, block_ms / 1000)
            return messages[start : start + limit]


def _after(messages: Sequence[BusMessage], last_id: str) -> int:
    for index, message in enumerate(messages):
        if message.id == last_id:
            return index + 1
    raise UnknownPosition(f"there is no message {last_id!r} on this topic", field="last_id")
