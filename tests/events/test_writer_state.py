"""What the writer says of itself, and the end of one whose database hangs."""

import logging
import sqlite3
import threading
import time
from concurrent.futures import Future

import pytest
from django.db import OperationalError

from conversations.core.errors import Fenced, Unavailable
from conversations.events import log
from conversations.events.log import commit_batch, retry_thread
from conversations.events.log import writer_threads as module
from conversations.events.log.commit_batch import WriterTrouble
from conversations.events.log.retry_thread import RetryThread
from conversations.events.log.write_job import Job
from conversations.models import Event
from tests.events.test_log import message_event
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


def full(*_, **__):
    raise OperationalError("database or disk is full")


def stored(writer, *events):
    done = Future()
    writer.submit(events, done)
    return done


def test_a_writer_whose_writes_fail_says_so_until_one_succeeds_again(writer, monkeypatch):
    assert writer.state == "ok"
    with monkeypatch.context() as patch:
        patch.setattr(commit_batch, "append", full)
        with pytest.raises(Unavailable, match="full"):
            stored(writer, message_event("a")).result(60)

        assert "disk is full" in writer.state
        assert "disk is full" in writer.state
    until(lambda: writer.state == "ok", within=60, what="the writer to be well again")
    assert Event.objects.count() == 0


def test_a_database_that_hangs_is_waited_for_a_bounded_time_at_the_end_and_nothing_is_acknowledged(monkeypatch, caplog):
    monkeypatch.setattr(module, "CLOSE_WITHIN", 0.3)
    hangs, has_begun, real = threading.Event(), threading.Event(), commit_batch.append

    def hang(*given, **options):
        has_begun.set()
        hangs.wait(60)
        return real(*given, **options)

    monkeypatch.setattr(commit_batch, "append", hang)
    made = log.WriterThreads()
    made.start()
    under_way = stored(made, message_event("a"))
    assert has_begun.wait(60)
    queued = stored(made, message_event("a"), message_event("a"))
    began = time.monotonic()
    made.close()

    assert time.monotonic() - began < 40  # it would hang for 60
    for done in (under_way, queued):
        assert isinstance(done.exception(0), Unavailable)
    assert "3 events were not acknowledged" in caplog.text
    hangs.set()
    until(lambda: not any(thread.is_alive() for thread in made._all), what="its threads to end")
    assert Event.objects.count() == 1, "what was refused while it was queued is stored all the same"


def test_a_statement_that_a_database_cannot_run_costs_its_own_job(writer, monkeypatch):
    real = commit_batch.append

    def picky(events, **options):
        if any(event.conversation == "bad" for event in events):
            raise OperationalError("too many SQL variables") from _cause()
        return real(events, **options)

    monkeypatch.setattr(commit_batch, "append", picky)
    answers = {name: stored(writer, message_event(name)) for name in ("a", "b", "bad", "c")}

    assert [answers[name].result(60)[0].seq for name in "abc"] == [1, 1, 1]
    assert isinstance(answers["bad"].exception(10), Unavailable)


def _cause():
    """Make SQLite's own error for a statement, as Django wraps it."""
    try:
        sqlite3.connect(":memory:").execute("SELECT nothing")
    except sqlite3.OperationalError as error:
        return error


def test_a_conversation_whose_turn_it_is_keeps_what_comes_later_behind_what_waits():
    retrying, answers = RetryThread(commit_batch.WriterTrouble()), []
    earlier, later = (Job([message_event("c", words=words)], None, 1) for words in ("earlier", "later"))
    sifting = threading.Thread(target=lambda: answers.append(retrying.sift([later])))

    class Queues(dict):
        def pop(self, key):
            queue = super().pop(key)
            sifting.start()
            sifting.join(0.2)  # ends here only if it looks without the lock
            return queue

    retrying._queues = Queues()
    retrying.take([earlier])
    retrying._first()
    sifting.join()

    assert (answers, retrying.jobs) == ([[]], [earlier, later])


def test_a_refused_write_is_one_line_without_a_traceback(writer, caplog):
    def refuse():
        raise Fenced("run r is another worker's")

    done = Future()
    with caplog.at_level(logging.DEBUG, logger=commit_batch.__name__):
        writer.submit([message_event("a")], done, in_same_transaction=refuse)
        with pytest.raises(Fenced):
            done.result(60)

    assert [(record.levelname, record.getMessage()) for record in caplog.records if "not stored" in record.message] == [
        ("DEBUG", "not stored: run r is another worker's")
    ]
    assert "Traceback" not in caplog.text


def test_a_lock_that_was_not_free_in_time_is_not_said_to_be_the_conversations(monkeypatch):
    monkeypatch.setattr(retry_thread, "PATIENCE", 0.0)
    thread, done = RetryThread(WriterTrouble()), Future()
    thread.take([Job([message_event("a")], done, 10)])

    thread._give_up()

    with pytest.raises(Unavailable, match="a lock that conversation a needs was not free in time"):
        done.result(0)
