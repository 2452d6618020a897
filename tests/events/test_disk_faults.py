"""A disk that is full or fails under a running server, and a damaged page: nothing is acknowledged that is not stored,
readiness says what is wrong, others go on, and all goes on by itself once the disk is back."""

import asyncio
import resource
import shutil
import signal
import sqlite3
import subprocess
import uuid
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress

import pytest
from django.db import DatabaseError

from conversations.core import db_threads
from conversations.core.errors import Unavailable
from conversations.events.log import commit_batch
from conversations.events.log.commit_batch import Committer, WriterTrouble
from conversations.events.log.write_job import Job
from conversations.models import Event
from conversations.realtime.readiness import HINTS, Readiness, not_ready
from conversations.realtime.server_runtime import ServerRuntime
from tests.events.test_crash import Ledger, judge
from tests.events.test_log import message_event
from tests.support.doors import Caller, encode
from tests.support.live import Server, prepared, scratch, until


class FailingDisk(Server):
    """A server whose files may not grow: what it writes beyond their size is an error of the disk."""

    def break_disk(self):
        size = max(path.stat().st_size for path in self.data_dir.glob("*") if path.is_file())
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size // 2, resource.RLIM_INFINITY))

    def mend_disk(self):
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class FullDisk(Server):
    """A server whose data lies on a small disk of its own, which something else fills."""

    def break_disk(self):
        with (self.data_dir / "other").open("wb", buffering=0) as other, suppress(OSError):  # No space left on device
            while other.write(bytes(4096)):
                pass

    def mend_disk(self):
        (self.data_dir / "other").unlink()


@contextmanager
def small_disk():
    """Mount 48 MiB."""
    home = scratch("disk") / "data"
    home.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(home)], capture_output=True).returncode:
        pytest.skip("only root may mount a disk")
    try:
        yield home
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


@pytest.fixture(params=[FailingDisk, FullDisk])
def server(request, tmp_path):
    if request.param is FailingDisk:
        made = FailingDisk(tmp_path / "data").start()
        yield made
        made.kill()
        return
    with small_disk() as home:
        shutil.copytree(prepared(), home, dirs_exist_ok=True)
        made = FullDisk(home)
        made.log = tmp_path / "log"
        yield made.start()
        made.kill()


def send(server, secret, path, body):
    """Post JSON; answer status, headers and body."""
    return Caller(server, secret).ask("POST", path, encode(body), Content_Type="application/json")


def publish(server, secret, ledger):
    """Publish one message, and note it once it is acknowledged."""
    event_id = str(uuid.uuid4())
    payload = {"type": "message", "id": event_id, "conversation_id": "c", "sender": "agent:A", "content": "x" * 20_000}
    answer = send(server, secret, "/api/v1/publish", {"topic": "chat:c", "payload": payload, "id": event_id})
    if answer[0] == 201:
        ledger.write("c", event_id, answer[2]["seq"])
    return answer


def pause(server, secret):
    """Do what is an action and no publishing."""
    return send(server, secret, "/api/v1/conversations/c/control", {"action": "pause"})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger")
    yield made
    made.file.close()


@pytest.mark.thorough
def test_a_disk_that_fails_is_told_and_all_goes_on_once_it_is_back(server, ledger):
    secret = server.token()
    for _ in range(20):
        assert publish(server, secret, ledger)[0] == 201

    server.break_disk()
    status, headers, body = until(
        lambda: (answer := publish(server, secret, ledger))[0] != 201 and answer, what="the disk to be missed"
    )
    ready = until(lambda: (answer := server.request("GET", "/readyz"))[0] == 503 and answer[1], what="it to be told")
    readable = server.request("GET", "/api/v1/conversations/c", token=secret)
    alive = server.request("GET", "/healthz")[0]
    steered = pause(server, secret)
    refused = [publish(server, secret, ledger) for _ in range(5)]
    server.mend_disk()
    until(lambda: server.request("GET", "/readyz")[0] == 200, within=60, what="the server to be ready again")
    again = publish(server, secret, ledger)
    paused = pause(server, secret)

    assert (status, headers["retry-after"], body["error"]["code"]) == (503, "1", "unavailable")
    assert "writer" in ready["not_ready"]
    assert {*ready["not_ready"]} <= {"writer", "search"}  # the indexer may have met it, too
    assert "cannot write right now" in ready["parts"]["writer"]
    assert (readable[0], readable[1]["messages"], alive) == (200, len(ledger.read()) - 1, 200)
    assert (steered[0], steered[1]["retry-after"], steered[2]["error"]["code"]) == (503, "1", "unavailable")
    assert {answer[0] for answer in refused} == {503}
    assert (again[0], paused[0]) == (201, 200)
    assert not [line for line in server.output().splitlines() if "Traceback" in line and "django.request" in line]
    server.kill()
    ledger.file.close()
    assert judge(server, ledger) == len(ledger.read()) > 20


def test_a_server_that_is_stopped_while_its_disk_is_full_ends_in_order():
    with small_disk() as home:
        shutil.copytree(prepared(), home, dirs_exist_ok=True)
        server = FullDisk(home)
        server.log = scratch("full") / "log"
        secret = server.token()
        server.start()
        payload = {"type": "message", "conversation_id": "c", "sender": "agent:A", "content": "x" * 20_000}
        assert server.publish(secret, "chat:c", payload)[0] == 201

        server.break_disk()
        until(lambda: server.publish(secret, "chat:c", payload)[0] == 503, what="the disk to be missed")
        ended = server.terminate()

        assert ended == -signal.SIGTERM
        assert "shutdown failed" not in server.output()
        assert "lifespan" not in server.output()


def damage():
    """Make what Django raises where SQLite meets a damaged page."""
    path = scratch("damage") / "file"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (x)")
        database.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
        database.commit()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as database, pytest.raises(sqlite3.DatabaseError) as met:
        database.execute("SELECT count(*), sum(length(x)) FROM t").fetchall()
    error = DatabaseError(str(met.value))
    error.__cause__ = met.value
    return error


@pytest.fixture
def damaged(monkeypatch):
    """Have a damaged page under conversation `bad`."""
    error, append = damage(), commit_batch.append

    def met(events, **more):
        if any(event.conversation == "bad" for event in events):
            raise error
        return append(events, **more)

    monkeypatch.setattr(commit_batch, "append", met)
    yield
    db_threads.damage.clear()


@pytest.mark.django_db(transaction=True)
def test_a_damaged_page_costs_who_needs_it_and_no_neighbour_in_its_batch(damaged):
    trouble, waits = WriterTrouble(), {key: Future() for key in ("near", "bad", "far")}
    jobs = [Job([message_event(key, "hello")], done, 10) for key, done in waits.items()]

    assert Committer(trouble).commit(jobs) == []

    assert [waits[key].result(1)[0].seq for key in ("near", "far")] == [1, 1]
    with pytest.raises(Unavailable, match="the database is damaged"):
        waits["bad"].result(1)
    assert (trouble.text, Event.objects.count()) == ("", 2)


@pytest.mark.django_db(transaction=True)
def test_readiness_tells_of_damage_and_sends_nobody_away(damaged):
    engine = ServerRuntime()
    engine.state = "ok"
    engine.writer.start()
    readiness = Readiness(engine)
    before = asyncio.run(readiness.parts())
    done = Future()
    engine.writer.submit([message_event("bad", "hello")], done)
    with pytest.raises(Unavailable):
        done.result(60)

    parts = until(lambda: (states := asyncio.run(readiness.parts()))["writer"] == "ok" and states, what="the next try")
    engine.writer.close()

    assert "record" not in before
    assert parts["record"].startswith("damaged: ")
    assert "record" not in not_ready(parts)
    assert "record" in HINTS
