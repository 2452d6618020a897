"""A record put back to an earlier time, with the same Redis: what Redis still holds is recorded, and starts nothing."""

import sqlite3
from contextlib import closing

import pytest

from tests.support.live import until
from tests.support.recorders import add, envelope, stored


def request(number):
    """Return a message that asks the agent Refunds for something, in a conversation of its own."""
    return envelope(f"case{number}", number, recipient="agent:Refunds")


def serve_agent(place):
    """Have the agent Refunds served there, by a worker that takes no run."""
    with closing(sqlite3.connect(place.home / "switchboard.sqlite3")) as database, database:
        columns = [row[1:4] for row in database.execute("PRAGMA table_info(conversations_agent)")]
        values = {name: 0 if "int" in kind or "bool" in kind else "" for name, kind, _ in columns if name != "id"}
        values |= {"name": "Refunds", "is_entry": 1}
        database.execute(
            f"INSERT INTO conversations_agent ({','.join(values)}) VALUES ({','.join('?' * len(values))})",
            list(values.values()),
        )


def record_until(nursery, place, condition):
    recorder = nursery.record(place)
    until(condition, what=f"the recorder:\n{recorder.output()}")
    assert recorder.terminate() == 0, recorder.output()


def runs(place):
    """Return the status of each run, by its conversation."""
    return dict(
        place.rows(
            "SELECT c.key,r.status FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id"
        )
    )


@pytest.mark.slow
def test_after_a_restore_no_message_starts_a_second_run(nursery, place, bus, tmp_path):
    copy, file = nursery.place(place.redis_url), tmp_path / "record.backup"
    serve_agent(place)
    add(bus, "chat:other", envelope("other", 0))
    record_until(nursery, place, lambda: stored(place) == 1)
    add(bus, "chat:Refunds", request(1))
    record_until(nursery, place, lambda: runs(place) == {"case1": "queued"})
    nursery.run(place, "backup", str(file))
    add(bus, "chat:Refunds", request(2))
    add(bus, "chat:Refunds/Desk", request(3))  # a stream that the backup does not know
    record_until(nursery, place, lambda: set(runs(place)) == {"case1", "case2", "case3"})

    restored = nursery.start(copy, "restore", str(file))
    assert restored.wait(60) == 0, restored.output()
    add(bus, "chat:Refunds", request(4))
    add(bus, "chat:Refunds/Next", request(5))
    record_until(nursery, copy, lambda: {"case2", "case3", "case4", "case5"} <= {key for key, *_ in copy.events()})

    assert runs(copy) == {"case1": "interrupted", "case4": "queued", "case5": "queued"}
    assert "interrupted now, as they may have run since the backup: 1." in restored.output()
    nursery.run(copy, "verify")
