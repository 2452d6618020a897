"""When the pieces of answers are stored: those of all runs together, within 50 ms, and never before other events."""

import json
import threading

import pytest

from conversations.core import principals
from conversations.events import log
from conversations.events.log.token_buffers import EVERY, PATIENCE, SLICE, TokenBuffers
from conversations.events.log.write_job import FULL, Job, OpenTokens, TokenSource
from conversations.events.log.writer_threads import WriteThread

AT = 1000.0  # seconds, when the buffers are first asked


def piece(run, text="word ", index=0):
    source = TokenSource(f"talk-{run}", f"run-{run}", 1, "agent:Clerk")
    return Job((), None, FULL, open_tokens=OpenTokens(source, {"agent": "Clerk", "turn": 1, "index": index}, text))


def message(conversation="desk", run=None):
    payload = {"event": "log", "text": "hello"} | ({"run_id": run} if run else {})
    return Job([log.from_internal(conversation, payload, principals.run_principal("Clerk"))], None, 9)


def runs_of(jobs):
    return [event.run for job in jobs for event in job.events]


def join(buffers, jobs, now):
    return buffers.join(jobs, now, is_last=False)


@pytest.fixture
def buffers():
    """Return buffers that have just stored something."""
    buffers = TokenBuffers()
    assert runs_of(join(buffers, [piece("first")], AT)) == ["run-first"]
    return buffers


def test_the_pieces_of_all_runs_are_stored_in_one_transaction_every_10_ms(buffers):
    for n in range(20):
        assert join(buffers, [piece(n)], AT + EVERY * n / 20) == []

    assert buffers.due_in(AT + EVERY * 0.95) == pytest.approx(EVERY * 0.05)
    assert runs_of(join(buffers, [], AT + EVERY)) == [f"run-{n}" for n in range(20)]


def test_no_piece_waits_longer_than_50_ms_for_a_look(buffers):
    join(buffers, [piece("other"), piece("first", index=1)], AT + EVERY)
    now = AT + EVERY
    while (due := buffers.due_in(now)) is not None:
        now += due
        if "run-first" in runs_of(join(buffers, [], now)):
            break

    assert AT + PATIENCE - EVERY <= now <= AT + PATIENCE


def test_other_events_are_stored_first_and_hold_up_tokens_for_one_look(buffers):
    waiting = [piece("slow")]

    assert runs_of(join(buffers, [*waiting, message()], AT + EVERY)) == [None]
    assert runs_of(join(buffers, [message()], AT + EVERY)) == [None]
    assert runs_of(join(buffers, [message()], AT + 2 * EVERY)) == [None, "run-slow"]


def test_a_runs_own_event_comes_after_its_pieces(buffers):
    join(buffers, [piece("a"), piece("b")], AT)

    assert runs_of(join(buffers, [message("talk-b", run="run-b")], AT)) == ["run-b", "run-b"]


def test_a_transaction_has_at_most_a_hundred_parts_and_the_next_follows_at_once(buffers):
    join(buffers, [piece(n) for n in range(SLICE + 5)], AT)

    assert len(join(buffers, [], AT + EVERY)) == SLICE
    assert buffers.due_in(AT + EVERY) == 0
    assert len(join(buffers, [], AT + EVERY)) == 5


def test_silent_turns_are_forgotten(buffers):
    join(buffers, [], AT + PATIENCE)

    assert buffers._runs == {}
    assert buffers.due_in(AT + PATIENCE) is None


def test_half_a_character_costs_no_other_pieces(buffers):
    join(buffers, [piece("a", "half \ud83d"), piece("b")], AT)

    jobs = join(buffers, [], AT + EVERY)
    assert [json.loads(job.events[0].body)["text"] for job in jobs] == ["half ?", "word "]


def test_a_piece_wakes_no_thread_that_will_look_by_itself():
    woken = []
    thread = WriteThread("writer", threading.Lock(), None, None)
    thread._news.notify = lambda: woken.append(len(thread.jobs))
    with thread._news:
        thread._is_resting = True
        thread.put(piece("a"))
        thread._is_resting = False
        thread.put(piece("b"))
        thread.put(message())

    assert woken == [1, 3]
