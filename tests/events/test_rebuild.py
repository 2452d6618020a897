"""Rebuild corrects whatever row is wrong, beside writers, in short pieces, from where an earlier run stopped."""

import itertools
import json
import random
import sqlite3
import threading
import time
from contextlib import closing, contextmanager

import pytest
from django.db import connection
from django.db.models import F

from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import folded_rows, refold
from conversations.events.log import rebuild as rebuilding
from conversations.events.log.rebuild import rebuild
from conversations.events.log.refold import Refold
from conversations.models import Approval, Conversation, Meta, Participant, Response, Run, ToolCall, Turn
from tests.events.test_open_calls import step
from tests.events.test_projections import WHO, rows, told_once
from tests.support.event_types import EXAMPLES
from tests.support.growth import cpu_of, no_garbage_collection, ratio, read_numbers, sqlite_steps
from tests.support.live import Server, until
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db


ASKED = [
    {"event": "run.queued", "run_kind": "agent"},
    {"event": "model.turn", "model": "m", "turn": 1, "usage": {"input_tokens": 5, "output_tokens": 6}},
    *({"event": "approval.requested", "approval_id": f"a{n}", "tool_call": f"t{n}", "name": "send"} for n in range(3)),
    {"event": "approval.decided", "approval_id": "a1", "tool_call": "t1", "decision": "approve"},
    {"event": "approval.escalated", "approval_id": "a2", "tool_call": "t2", "to": "admin"},
]


@pytest.fixture
def record():
    """Three conversations of every kind, and one with approvals."""
    everything, dice = list(itertools.chain.from_iterable(EXAMPLES.values())), random.Random(7)
    for key in ("c0", "c1", "c2"):
        log.append([unchecked(key, told_once(payload, key), WHO[0]) for payload in everything])
        log.append(
            [unchecked(key, told_once(payload, key), dice.choice(WHO)) for payload in dice.choices(everything, k=100)]
        )
    log.append([unchecked("c3", {"agent": "agent:A", "run_id": "run-a", **payload}, WHO[0]) for payload in ASKED])
    every = (ToolCall, Run, Approval, Response, Turn, Participant)
    assert [model for model in every if not model.objects.exists()] == []
    return rows()


def spoil():
    """Take away, add and change rows of every table."""
    for model in (ToolCall, Response, Turn, Participant, Approval):
        every = list(model.objects.order_by("pk"))
        for gone in every[::3]:
            gone.delete()
    ToolCall.objects.update(name=F("nth"), finished_seq=None, status="called")
    ToolCall.objects.filter(pk=ToolCall.objects.order_by("pk").values("pk")[:1]).update(called_seq=10**6)
    Run.objects.update(status="done", reason="nobody said so", attempt=77)
    Approval.objects.update(decided_by="user:eve")
    Response.objects.update(status="eve")
    Turn.objects.update(input_tokens=10**6)
    Participant.objects.update(is_named=True, kind="eve")
    first = Conversation.objects.earliest("id")
    Participant.objects.create(conversation=first, name="agent:eve", kind="agent")
    Run.objects.create(id="eve", conversation=first, agent="eve", status="queued", input_seq=1, queued_seq=1)
    Conversation.objects.update(messages=0, errors=99, title="eve", state="open", owner="user:eve", last_line="eve")
    Conversation.objects.update(opened_by="user:eve", outside_seq=F("outside_seq") + 5)


@pytest.mark.parametrize("looks", [refold.LOOKS, 0], ids=["without a lock first", "under the lock"])
def test_whatever_is_wrong_comes_right(record, looks, monkeypatch):
    monkeypatch.setattr(refold, "LOOKS", looks)
    monkeypatch.setattr(refold, "PAGE", 40)
    monkeypatch.setattr(refold, "LOCKED", 7)
    spoil()
    assert rows() != record

    list(rebuild())

    assert rows() == record


def test_a_whole_record_is_only_read(record):
    statements = []

    def note(execute, sql, *rest):
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        for conversation in Conversation.objects.all():
            Refold(conversation.pk, conversation.key).run()

    assert statements
    assert [sql for sql in statements if not sql.startswith("SELECT") or "FOR UPDATE" in sql] == []


def test_a_run_that_was_stopped_is_gone_on_with(record, monkeypatch):
    monkeypatch.setattr(rebuilding, "NOTE_EVERY", -1)
    spoil()
    first = rebuild()
    assert [next(first)[0] for _ in range(3)] == ["c0", "c1", "c2"]  # noted: two
    first.close()

    assert [key for key, _ in rebuild()] == ["c2", "c3"]
    assert [key for key, _ in rebuild()] == ["c0", "c1", "c2", "c3"]
    assert rows() == record
    assert not Meta.objects.filter(name="rebuild").exists()


def test_a_conversation_removed_meanwhile_is_not_made_again(record):
    conversation = Conversation.objects.get(key="c1")
    refolded = Refold(conversation.pk, "c1")
    Conversation.objects.filter(key="c1").update(key="staged:c1", is_staged=True)

    with pytest.raises(refold.Gone):
        refolded.run()

    assert not Conversation.objects.filter(key="c1").exists()


@contextmanager
def appending(key):
    """Somebody appends calls, results and messages without pause."""
    done, failed, count = threading.Event(), [], itertools.count(1)

    def work():
        try:
            while not done.is_set():
                n = next(count)
                log.append([step(key, f"live-{n}", "start"), step(key, None, "start")])
                log.append([step(key, f"live-{n}", "success"), step(key, None, "success")])
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield count
    finally:
        done.set()
        thread.join()
        assert not failed


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("looks", [refold.LOOKS, 0], ids=["without a lock first", "under the lock"])
def test_what_is_appended_meanwhile_is_folded_once(looks, monkeypatch):
    monkeypatch.setattr(refold, "LOOKS", looks)
    monkeypatch.setattr(refold, "PAGE", 100)
    monkeypatch.setattr(refold, "LOCKED", 20)
    log.append([step("a", f"n{n}", "start") for n in range(600)])
    log.append([step("a", f"n{n}", "success") for n in range(0, 600, 3)])
    with appending("a") as count:
        until(lambda: Conversation.objects.get(key="a").head_seq > 820, what="a writer that writes")
        with write_transaction():  # in turn: SQLite's own wait for a lock may end before the writer leaves a gap
            ToolCall.objects.filter(called_seq__lte=600).update(status="eve")
            Conversation.objects.update(errors=99)
        before = Conversation.objects.get(key="a").head_seq
        list(rebuild())
        after = Conversation.objects.get(key="a").head_seq

    assert after > before
    row, calls = Conversation.objects.get(key="a"), ToolCall.objects.all()
    assert (row.tool_calls, row.errors) == (600 + (row.head_seq - 800) // 2, 0)
    assert calls.filter(status="eve").count() == 0
    assert calls.filter(called_seq__lte=600, status="done").count() == 200
    checked = Refold(row.pk, "a")
    checked.run()
    assert checked.corrected == 0
    assert next(count) > 1


@pytest.mark.django_db(transaction=True)
def test_a_turn_told_between_folding_and_looking_stays(monkeypatch):
    turn = {"event": "model.turn", "run_id": "r", "agent": "agent:A", "model": "m", "usage": {"input_tokens": 5}}
    log.append([unchecked("a", {**turn, "turn": 1}, WHO[0])])
    outside = folded_rows.outside

    def appended_before(cursor, table, conversation, head):
        if table == "turns":
            log.append([unchecked("a", {**turn, "turn": 2}, WHO[0])])
        return outside(cursor, table, conversation, head)

    monkeypatch.setattr(folded_rows, "outside", appended_before)
    list(rebuild())

    assert Turn.objects.count() == 2


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_no_lock_is_held_for_long(monkeypatch):
    for at in range(0, 6_000, 1_000):
        log.append([step("a", f"n{n}", "start") for n in range(at, at + 1_000)])
    ToolCall.objects.update(status="eve")
    held = []

    @contextmanager
    def timed():
        with log.write_transaction():
            began = time.thread_time()
            yield
            held.append(time.thread_time() - began)

    monkeypatch.setattr(refold, "write_transaction", timed)
    with no_garbage_collection():
        list(rebuild())

    assert ToolCall.objects.filter(status="eve").count() == 0
    assert len(held) >= 6_000 / refold.LOCKED
    assert max(held) < 5 * min(cpu_of(read_numbers) for _ in range(5))


def refolds(*counts):
    """Fill a conversation with so many steps of calls, for each; return what folds them again."""
    for count in counts:
        for at in range(0, count, 500):
            log.append([step(str(count), None, "start") for _ in range(500 if at % 1_000 else 300)])
            log.append([step(str(count), None, "success") for _ in range(0 if at % 1_000 else 200)])
    keys = map(str, counts)
    return [Refold(Conversation.objects.get(key=key).pk, key).run for key in keys]


@pytest.mark.slow
@pytest.mark.sqlite("its steps are counted")
def test_the_database_works_as_much_for_an_event_of_a_long_conversation():
    few, many = refolds(4_000, 16_000)

    assert sqlite_steps(many) < 1.2 * 4 * sqlite_steps(few)


@pytest.mark.thorough
def test_the_time_grows_as_the_events_do():
    few, many = refolds(1_500, 12_000)

    assert ratio(many, few, below=16) < 16


def spoil_file(server):
    """Change every call behind the running server's back; return how many there are."""
    with closing(sqlite3.connect(server.data_dir / "switchboard.sqlite3", timeout=60)) as database, database:
        return database.execute("UPDATE conversations_toolcall SET status='eve'").rowcount


@pytest.mark.slow
def test_a_rebuild_killed_at_any_moment_is_finished_by_the_next():
    server = Server().start()
    try:
        secret = server.token()
        events = [
            {"event": "tool_step", "name": "t", "agent": "agent:A", "status": status, "tool_call_id": str(n)}
            for n in range(20)
            for status in ("start", "success")
        ]
        for key in range(60):
            server.request(
                "POST",
                "/api/v1/publish",
                json.dumps(
                    {
                        "messages": [
                            {"topic": f"stream:k{key}", "payload": {**payload, "conversation_id": f"k{key}"}}
                            for payload in events
                        ]
                    }
                ).encode(),
                secret,
            )
        with server.database() as database:
            columns = "id,status,finished_seq,duration_ms"
            before = database.execute(f"SELECT {columns} FROM conversations_toolcall ORDER BY id").fetchall()
            assert len(before) == 1_200
        wrong = spoil_file(server)
        log_file = server.data_dir / "rebuild.log"
        process = server.spawn(["rebuild"], log_file, log_file)
        with server.database() as database:
            count_eve = "SELECT count(*) FROM conversations_toolcall WHERE status='eve'"
            until(
                lambda: database.execute(count_eve).fetchone()[0] < wrong, within=60, what="the first to be corrected"
            )
            process.kill()
            process.wait()
            assert "Rebuilt" not in log_file.read_text()
            server.command("rebuild")
            assert database.execute(f"SELECT {columns} FROM conversations_toolcall ORDER BY id").fetchall() == before
    finally:
        server.kill()
