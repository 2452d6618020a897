"""A conversation that somebody holds is its own trouble: neighbours commit, its own events wait and are answered."""

import json
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from conversations.core.errors import Unavailable
from conversations.events import log
from conversations.events.log import retry_thread
from conversations.events.response_ids import ResponseRequest
from conversations.models import Agent, Conversation, Event, Token
from conversations.runs.responses import create
from tests.events.test_log import message_event
from tests.support.cast import cast
from tests.support.live import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite locks its file, not rows"),
]
QUICK = 6.0  # seconds: three quarters of `lock_timeout`


@contextmanager
def held(work):
    """Do `work` in a transaction of another thread's and leave that open."""
    is_held, is_over = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            work()
            is_held.set()
            is_over.wait(60)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(60)
    try:
        yield is_over
    finally:
        is_over.set()
        holder.join()


def locking(key):
    """Lock a conversation's row, as an action or `rebuild` does."""
    return lambda: Conversation.objects.select_for_update().get(key=key)


@contextmanager
def running(*jobs, in_same_transaction=None):
    """Have a writer find these jobs together; yield it and who waits."""
    writer, waits = log.WriterThreads(), []
    for events in jobs:
        waits.append(Future())
        writer.submit(events, waits[-1], in_same_transaction=in_same_transaction)
    writer.start()
    try:
        yield writer, waits
    finally:
        writer.close()


def test_a_held_conversation_holds_neither_a_neighbour_in_its_batch_nor_what_comes_later():
    log.append([message_event("held"), message_event("near")])
    began = time.monotonic()
    with (
        held(locking("held")) as is_over,
        running([message_event("held")], [message_event("near")], [message_event("new")]) as (writer, waits),
    ):
        mine, *others = waits
        later = Future()
        writer.submit([message_event("near")], later)

        assert [wait.result(QUICK)[0].seq for wait in (*others, later)] == [2, 1, 3]
        assert time.monotonic() - began < QUICK
        assert not mine.done()
        is_over.set()
        assert mine.result(QUICK)[0].seq == 2


def test_what_waits_for_a_held_conversation_keeps_its_order_and_is_numbered_without_a_gap():
    log.append([message_event("held")])
    with held(locking("held")) as is_over, running([message_event("held", words="0")]) as (writer, waits):
        for n in range(1, 30):
            waits.append(Future())
            writer.submit([message_event("held", words=f"{n}")], waits[-1])
        is_over.wait(0.1)
        is_over.set()

        assert [wait.result(QUICK)[0].seq for wait in waits] == list(range(2, 32))
    bodies = Event.objects.filter(seq__gt=1).order_by("seq").values_list("body", flat=True)
    assert [f'"content": "{n}"' in body for n, body in enumerate(bodies)] == [True] * 30


def test_who_waits_for_a_held_conversation_too_long_is_told_and_nothing_of_theirs_is_stored(monkeypatch):
    monkeypatch.setattr(retry_thread, "PATIENCE", 0.3)
    log.append([message_event("held"), message_event("near")])
    with held(locking("held")), running([message_event("held")], [message_event("near")]) as (_, (mine, other)):
        with pytest.raises(Unavailable, match="held"):
            mine.result(QUICK)

        assert other.result(QUICK)[0].seq == 2
    assert log.heads(["held", "near"]) == {"held": 1, "near": 2}


def test_a_conversation_that_somebody_is_making_holds_no_neighbour():
    with (
        held(lambda: log.append([message_event("made")])) as is_over,
        running([message_event("made")], [message_event("near")]) as (_, waits),
    ):
        assert waits[1].result(QUICK)[0].seq == 1
        assert not waits[0].done()
        is_over.set()
        assert waits[0].result(QUICK)[0].seq == 2


def test_who_waits_for_a_conversation_in_which_somebody_queues_a_run_sees_that_run():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True, served_until=1 << 62)
    log.append([message_event("busy")])
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    response_request = ResponseRequest(model="Dialogue", input=[item], params={"metadata": {"conversation_id": "busy"}})
    by, first, second = cast()["operator"], [], []

    def ask_too():
        second.append(create.receive(by, response_request))
        connection.close()

    other = threading.Thread(target=ask_too)
    with held(lambda: first.append(create.receive(by, response_request))):
        other.start()
        until(somebody_waits, what="the second one to wait for the row")
    other.join()

    assert [received.must_wait for received in (*first, *second)] == [False, True]
    bodies = Event.objects.filter(kind="run.queued").order_by("seq").values_list("body", flat=True)
    assert [json.loads(body).get("must_wait") for body in bodies] == [None, True]


def somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname=current_database() AND wait_event_type='Lock'"
        )
        return cursor.fetchone()[0]


def test_a_token_that_somebody_changes_holds_up_only_what_it_publishes():
    Token.objects.create(name="robot", digest="d", role="agent")
    held_token = held(lambda: Token.objects.select_for_update().get(name="robot"))
    other = message_event("near")._replace(principal="user:maria")
    with held_token as is_over, running([message_event("mine")], [other]) as (_, waits):
        assert waits[1].result(QUICK)[0].seq == 1
        assert not waits[0].done()
        is_over.set()
        assert waits[0].result(QUICK)[0].seq == 1


def test_what_rides_along_and_waits_for_a_lock_holds_no_neighbour():
    Token.objects.create(name="row", digest="d", role="agent")
    log.append([message_event("mine"), message_event("near")])

    def ride():
        Token.objects.select_for_update().get(name="row")

    with held(ride) as is_over:
        writer, mine, others = log.WriterThreads(), Future(), [Future() for _ in range(8)]
        writer.submit([message_event("mine")], mine, in_same_transaction=ride)
        [writer.submit([message_event(f"near{n}")], other) for n, other in enumerate(others)]
        writer.start()
        try:
            assert [other.result(QUICK)[0].seq for other in others] == [1] * 8
            assert not mine.done()
            is_over.set()
            assert mine.result(QUICK)[0].seq == 2
        finally:
            writer.close()


def test_a_writer_that_is_closed_waits_for_a_held_conversation_a_little_and_then_tells_who_waits(monkeypatch):
    monkeypatch.setattr(retry_thread, "LAST_PATIENCE", 0.3)
    log.append([message_event("held")])
    with held(locking("held")):
        with running([message_event("held")], [message_event("near")]) as (writer, (mine, other)):
            began = time.monotonic()
            writer.close()

        assert time.monotonic() - began < QUICK
        assert isinstance(mine.exception(0), Unavailable)
        assert other.result(0)[0].seq == 1


def test_events_of_many_threads_are_stored_in_order_beside_somebody_who_locks_and_lets_go():
    keys = [f"c{n}" for n in range(6)]
    log.append([message_event(key) for key in keys])
    writer, is_over = log.WriterThreads(), threading.Event()

    def lock():
        while not is_over.is_set():
            for key in keys:
                with transaction.atomic():
                    locking(key)()
        connection.close()

    others = [threading.Thread(target=lock) for _ in range(2)]
    [other.start() for other in others]
    writer.start()
    waits = {key: [Future() for _ in range(60)] for key in keys}
    for n in range(60):
        for key in keys:
            writer.submit([message_event(key, words=f"{n}")], waits[key][n])
    both = Future()
    writer.submit([message_event("c0"), message_event("c3")], both)
    try:
        for key in keys:
            seqs = [wait.result(60)[0].seq for wait in waits[key]]
            assert seqs == sorted(set(seqs)), key
        assert [stored.conversation for stored in both.result(60)] == ["c0", "c3"]
    finally:
        is_over.set()
        writer.close()
        [other.join() for other in others]
    for key in keys:
        numbers = Event.objects.filter(conversation__key=key).order_by("seq").values_list("seq", flat=True)
        assert list(numbers) == list(range(1, 63 if key in ("c0", "c3") else 62))
