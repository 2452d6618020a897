"""The lock of those who write to SQLite's file: first come, first served, and nobody waits longer than ten seconds."""

import sqlite3
import sys
import threading
import time

import pytest
from django.db import OperationalError, connection

from conversations.core.write_transaction import FifoLock, asked_at, write_transaction
from tests.support.live import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite("PostgreSQL has no such lock")]
PATIENCE = 0.6


@pytest.fixture
def other(monkeypatch):
    """Another process that holds the file."""
    monkeypatch.setattr(sys.modules["conversations.core.write_transaction"], "PATIENCE", PATIENCE)
    made = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False, uri=True)
    made.execute("BEGIN IMMEDIATE")
    yield made
    made.close()


def wait_to_write(results):
    began = time.monotonic()
    try:
        with write_transaction():
            results.append("wrote")
    except OperationalError as error:
        results.append((time.monotonic() - began, str(error)))
    connection.close()


def crowd():
    results = []
    threads = [threading.Thread(target=wait_to_write, args=[results]) for _ in range(6)]
    [thread.start() for thread in threads]
    return threads, results


def test_six_who_wait_for_a_file_that_somebody_holds_give_up_together(other):
    threads, results = crowd()
    [thread.join() for thread in threads]

    assert len(results) == 6
    assert max(took for took, _ in results) < 2 * PATIENCE
    assert any("locked" in text for _, text in results)


def test_they_go_on_in_turn_once_it_lets_go(other):
    threads, results = crowd()
    other.execute("ROLLBACK")
    [thread.join() for thread in threads]

    assert results == ["wrote"] * 6


def write_behind_another():
    """Write while another thread has the lock, which it leaves as soon as somebody waits for it."""
    lock, is_taken = sys.modules["conversations.core.write_transaction"]._write_lock, threading.Event()

    def hold():
        with write_transaction():
            is_taken.set()
            until(lambda: lock._waiting, within=PATIENCE / 3)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_taken.wait(10)
    try:
        with write_transaction():
            pass
    finally:
        holder.join()


def test_what_a_request_waited_before_it_began_is_taken_from_its_first_wait_alone(other):
    with asked_at(time.monotonic() - 2 * PATIENCE):
        with pytest.raises(OperationalError, match="locked"), write_transaction():
            pass
        other.execute("ROLLBACK")
        with write_transaction():
            pass
        write_behind_another()


def test_the_time_a_request_works_is_none_that_it_waited(other):
    other.execute("ROLLBACK")
    began = time.monotonic()

    with asked_at(began):
        until(lambda: time.monotonic() > began + PATIENCE)
        write_behind_another()


def test_who_gave_up_is_not_handed_the_lock():
    lock = FifoLock()

    assert lock.acquire(0)
    assert not lock.acquire(0.01)
    lock.release()
    assert lock.acquire(0)
