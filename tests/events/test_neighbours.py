"""While one conversation is held or fails, its neighbours commit as soon as without trouble: measured in turns, in one
run."""

import sys
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

import pytest
from django.db import connection

from conversations.core.errors import Invalid
from conversations.events import log
from tests.events.test_log import message_event
from tests.events.test_writer_locks import held, locking
from tests.support.live import until
from tests.support.tiers import rounds

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks its file, not rows"),
]
NEIGHBOURS = [f"near{n}" for n in range(16)]
ASKED_S = 0.05  # later than without trouble, at p99
TURNS = 4


def commits(writer, count):
    """Commit one event after the other, each of another conversation; return how long each took, seconds."""
    took = []
    for n in range(count):
        done, began = Future(), time.perf_counter()
        writer.submit([message_event(NEIGHBOURS[n % len(NEIGHBOURS)])], done)
        done.result(60)
        took.append(time.perf_counter() - began)
    return took


@contextmanager
def publishing(writer, submit):
    """Let somebody else go on and on with what is in trouble, as an agent does that tries again."""
    is_over, count = threading.Event(), [0]

    def publish():
        while not is_over.wait(0.005):
            submit(writer)
            count[0] += 1

    other = threading.Thread(target=publish)
    other.start()
    try:
        until(lambda: count[0] > 3, what="the trouble to begin")
        yield
    finally:
        is_over.set()
        other.join()


def fail():
    """Refuse to store."""
    raise Invalid("cannot be")


def publish_failing(writer):
    """Publish what fails, and wait for the answer as a client does."""
    done = Future()
    writer.submit([message_event("failing")], done, in_same_transaction=fail)
    assert isinstance(done.exception(60), Invalid)


TROUBLES = {"held": lambda writer: writer.submit([message_event("held")]), "failing": publish_failing}


@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_neighbours_commit_as_soon_as_without_trouble(trouble, capsys):
    log.append([message_event(key) for key in ("held", "failing", *NEIGHBOURS)])
    writer, free, troubled = log.WriterThreads(), [], []
    writer.start()
    try:
        commits(writer, 64)  # connections are made, plans are known
        for _ in range(TURNS):
            free += commits(writer, rounds(50, 200))
            with ExitStack() as stack:
                if trouble != "failing":
                    stack.enter_context(held(locking("held")))
                stack.enter_context(publishing(writer, TROUBLES[trouble]))
                troubled += commits(writer, rounds(50, 200))
    finally:
        writer.close()

    figures = [sorted(took)[int(len(took) * q)] for q in (0.5, 0.99) for took in (free, troubled)]
    with capsys.disabled():
        sys.stdout.write(f"\n{trouble}: p50 and p99 of free and troubled: {[round(s * 1000, 1) for s in figures]} ms\n")
    assert figures[1] <= 2 * figures[0] + ASKED_S
    assert figures[3] <= 2 * figures[2] + ASKED_S
