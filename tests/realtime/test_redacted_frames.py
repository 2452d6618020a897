"""A frame with redacted words that is drawn after the redaction was announced does not stay in the ring."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conversations.core.db_threads import with_connection
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.realtime.hub import Hub
from conversations.redaction import redact


@pytest.mark.django_db(transaction=True)
def test_words_that_wait_to_be_drawn_while_they_are_redacted_leave_the_ring(monkeypatch):
    (stored,) = log.append([log.from_internal("talk", {"event": "log", "text": "secret"}, SYSTEM)])
    redact.redact(SYSTEM, "talk", [1], "asked for")
    redaction = log.read_after("talk", 1)
    waiting: list[tuple[Any, ...]] = []

    async def scenario() -> list[int]:
        hub = Hub(epoch="e")
        hub._loop = asyncio.get_running_loop()
        monkeypatch.setattr(hub._render_thread, "submit", lambda *work: waiting.append(work))
        feed = hub.follow(
            "talk", "html", type("Nobody", (), {"is_up_to_date": False, "last": 0, "wake": lambda _: None})()
        )
        hub._ingest(feed, [stored])
        hub._ingest(feed, redaction)
        for draw, *arguments in waiting:
            await asyncio.to_thread(with_connection, draw, *arguments)
        await asyncio.sleep(0)
        return [frame.first for frame in feed.ring]

    assert asyncio.run(scenario()) == [2]
