"""The topic `audit`: that there are new entries, at their commit, in few frames, and only for who may read the log."""

import asyncio
import json
import time
from collections.abc import Callable

import pytest
from django.db import transaction

from conversations.access.audit import chain
from conversations.core import principals
from conversations.core.write_transaction import write_transaction
from conversations.events import commit_listeners
from conversations.realtime import state_topics
from conversations.realtime.socket_writer import SocketWriter
from conversations.realtime.state_topics import AuditTopic, StateSubscription

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def enter(count: int = 1) -> int:
    """Make entries, each in its own transaction; return the last one's number."""
    for _ in range(count):
        with write_transaction():
            entry = chain.add_entry(principals.SYSTEM, "look", "thing:1")
    return entry.seq


async def versions_sent(work: Callable[[], int]) -> list[int]:
    """Return the versions of the row that a subscriber is sent, before `work` and till the one it returns is there."""
    sent: list[int] = []

    async def send(message):
        sent.extend(row["version"] for row in json.loads(message["text"])["rows"])

    async def is_sent(version: int | None) -> None:
        async with asyncio.timeout(60):
            while not sent or (version is not None and version not in sent):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    topic = AuditTopic()
    topic.start()
    view = StateSubscription(topic, SocketWriter(send, None), failed=lambda error: None)
    try:
        await is_sent(None)
        await is_sent(await asyncio.to_thread(work))
    finally:
        view.close()
        await topic.stop()
    return sent


def test_an_entry_is_told_of_at_its_commit(monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 3600)

    assert asyncio.run(versions_sent(enter)) == [0, 1]


def test_an_entry_whose_notification_is_lost_is_found_by_the_next_look(monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 0.02)
    monkeypatch.setattr(state_topics, "should_drop", lambda _: True)

    assert asyncio.run(versions_sent(enter))[-1] == 1


def test_rows_that_could_not_be_offered_once_are_offered_by_the_next_look(monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 0.02)
    offer, failures = StateSubscription.offer, ["unforeseen"]

    def offer_later(subscription, rows):
        if rows and failures:
            raise Exception(failures.pop())
        offer(subscription, rows)

    monkeypatch.setattr(StateSubscription, "offer", offer_later)

    assert asyncio.run(versions_sent(enter))[-1] == 1


def test_many_entries_are_few_frames(monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 3600)
    began = time.monotonic()

    sent = asyncio.run(versions_sent(lambda: enter(100)))

    assert len(sent) <= 3 + (time.monotonic() - began) / state_topics.COALESCE


def test_an_entry_is_not_told_of_before_its_commit_nor_where_it_is_rolled_back():
    calls: list[str] = []
    stop = commit_listeners.on_audited(lambda: calls.append("entry"))

    with write_transaction():
        chain.add_entry(principals.SYSTEM, "look", "thing:1")
        transaction.set_rollback(True)
    with write_transaction():
        chain.add_entry(principals.SYSTEM, "look", "thing:2")
        assert calls == []
    stop()

    assert calls == ["entry"]
