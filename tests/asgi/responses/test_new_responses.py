"""Requests that begin a conversation: stored by the log's writer, many in one transaction, and followed from the first
event on."""

import asyncio
import threading

import pytest

from conversations.access.accounts import tokens
from conversations.core.errors import Busy
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.events.log import commit_batch
from conversations.models import AuditEntry, Conversation, Event, Response
from tests.asgi.responses.test_responses_endpoint import text_of
from tests.support.live import until
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
HELLO = {"model": MODEL, "input": "hello", "stream": True}


@pytest.fixture
def busy():
    """Have another thread write until the event is set: what comes meanwhile waits."""
    begun, over = threading.Event(), threading.Event()

    def write():
        with write_transaction():
            begun.set()
            over.wait(20)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(20)
    yield over
    over.set()
    thread.join()


@pytest.mark.sqlite("its one lock makes them wait")
def test_those_that_wait_at_the_same_time_are_stored_in_one_transaction(desk, busy, monkeypatch):
    transactions, append = [], commit_batch.append
    monkeypatch.setattr(
        commit_batch, "append", lambda *batch, **how: (transactions.append(1), append(*batch, **how))[1]
    )

    async def ask_all():
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(desk._ask(HELLO | {"background": True, "stream": False}, "/v1/responses"))
                       for _ in range(8)]  # fmt: skip
            await asyncio.to_thread(until, lambda: desk.context.followers.count == 8)
            busy.set()
        return [task.result().json for task in answers]

    answers = desk.run(ask_all)

    assert len({answer["id"] for answer in answers}) == Response.objects.count() == 8
    assert len(transactions) <= 2
    for key in Conversation.objects.values_list("key", flat=True):
        kinds = Event.objects.filter(conversation__key=key).order_by("seq").values_list("kind", flat=True)
        assert list(kinds)[:3] == ["conversation.opened", "response.received", "run.queued"]


def test_its_events_are_told_without_reading_them_from_the_database(desk, monkeypatch):
    async def refuse(*_):
        raise AssertionError("nothing has to be read")

    monkeypatch.setattr(desk.context.followers.readers, "run", refuse)
    events = desk.stream("hello")

    assert text_of(events[-1]["response"]) == "You said: hello"
    assert desk.context.followers.count == 0


def test_lost_notifications_delay_its_events_by_a_second_at_most(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.follow_events.should_drop", lambda _: True)

    events = desk.stream("hello")

    assert text_of(events[-1]["response"]) == "You said: hello"


def test_one_that_is_not_stored_leaves_nobody_who_follows(desk, monkeypatch):
    def refuse(*_, **__):
        raise Busy("the write queue is full")

    monkeypatch.setattr(desk.runtime.writer, "_queue", refuse)
    answer = desk.create("hello")

    assert answer.status == 429
    assert desk.context.followers.count == len(desk.context.followers._expected) == Event.objects.count() == 0


def test_a_client_that_leaves_while_it_is_stored_leaves_nobody_who_follows(desk, busy):
    async def leave():
        async with desk.socket() as socket:
            socket.create("hello")
            await asyncio.to_thread(until, lambda: desk.context.followers.count)
        return desk.context.followers.count, len(desk.context.followers._expected)

    assert desk.run(leave) == (0, 0)


def test_a_token_revoked_before_the_commit_is_refused_as_by_any_action(desk, busy, monkeypatch):
    async def ask():
        asking = asyncio.create_task(desk._ask(HELLO, "/v1/responses"))
        await asyncio.to_thread(until, lambda: desk.runtime.writer.waiting_jobs or desk.context.followers.count)
        busy.set()
        return await asking

    monkeypatch.setattr(desk.runtime.writer, "store", revoking(desk))
    answer = desk.run(ask)

    assert answer.status == 403
    assert "may not respond" in answer.json["error"]["message"]
    assert Event.objects.count() == desk.context.followers.count == 0
    assert AuditEntry.objects.filter(verb="respond", outcome="refused").exists()


def revoking(desk):
    """Return the writer's way to store, which has the token revoked first."""
    store = desk.runtime.writer.store

    async def revoke_then_store(events):
        await asyncio.to_thread(tokens.revoke_token, SYSTEM, "asker-operator")
        return await store(events)

    return revoke_then_store


def test_a_response_is_counted_once_however_it_is_told(desk):
    async def by_socket():
        async with desk.socket() as socket:
            socket.create("hello")
            await socket.turn()

    tellings = [lambda: desk.create("hello"), lambda: desk.stream("hello"), lambda: desk.run(by_socket)]
    for count, tell in enumerate(tellings, start=1):
        tell()
        assert dict(desk.runtime.responses) == {"completed": count}
