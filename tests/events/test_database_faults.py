"""SQLite that cannot write: locked by another process, or a full disk. Reads live, what is acknowledged is stored."""

import os
import shutil
import sqlite3
import threading
import time
import uuid
from contextlib import closing

import pytest

from tests.events.test_crash import Ledger, Publisher, judge
from tests.support.live import Server, prepared, until

SERVE = """
import pathlib, threading, time
from django.conf import settings
from django.core.management import call_command
from django.db.backends.signals import connection_created

made, room = [], settings.DATA_DIR / "room"

def limit(connection, **_):
    if connection.connection is not None:
        connection.connection.execute(f"PRAGMA max_page_count={room.read_text()}")

def keep():
    while True:
        [limit(connection) for connection in list(made)]
        time.sleep(0.05)

connection_created.connect(lambda connection, **_: made.append(connection) or limit(connection), weak=False)
threading.Thread(target=keep, daemon=True).start()
call_command("serve", "--no-demo", port=%s)
"""


class CrampedServer(Server):
    """A server whose database may have as many pages as the file `room` says, at any time."""

    def spawn(self, arguments, stdout, stderr, stdin=os.devnull):
        if arguments[0] == "serve":
            arguments = ["shell", "--no-imports", "-c", SERVE % self.port]
        return super().spawn(arguments, stdout, stderr, stdin)

    def give_room(self, pages):
        """Let the file have so many pages more than now; None: as many as it likes."""
        with closing(self.database()) as database:
            (now,) = database.execute("PRAGMA page_count").fetchone()
        draft = self.data_dir / "room.new"
        draft.write_text(str(1 << 30 if pages is None else now + pages))
        draft.replace(self.data_dir / "room")


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "data").start()
    yield made
    made.kill()


def write(server):
    """Open its file for writing, as another process may."""
    return closing(sqlite3.connect(server.data_dir / "switchboard.sqlite3", isolation_level=None, timeout=60))


def locked(server, seconds):
    with write(server) as other:
        other.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        other.execute("ROLLBACK")


@pytest.mark.thorough
def test_a_database_locked_for_eight_seconds_stops_no_reader_and_loses_nothing(server, tmp_path):
    secret, ledger = server.token(), Ledger(tmp_path / "ledger")
    publishers = [Publisher(server, secret, ledger, i) for i in range(4)]
    [publisher.start() for publisher in publishers]
    until(lambda: len(ledger.read()) > 20, what="messages")

    other = threading.Thread(target=locked, args=[server, 8.0])
    other.start()
    slowest, statuses = 0.0, set()
    while other.is_alive():
        began = time.monotonic()
        statuses.add(server.request("GET", "/api/v1/conversations", token=secret)[0])
        slowest = max(slowest, time.monotonic() - began)
    before = len(ledger.read())
    until(lambda: len(ledger.read()) > before + 20, within=60, what="messages again")
    for publisher in publishers:
        publisher.done.set()
    for publisher in publishers:
        publisher.join()

    assert statuses == {200}
    assert slowest < 2
    assert [publisher.trouble for publisher in publishers] == [[]] * 4
    ledger.file.close()
    server.terminate()
    assert judge(server, ledger) > 40


@pytest.mark.slow
def test_a_full_disk_is_told_and_when_there_is_room_again_all_goes_on(tmp_path):
    server = CrampedServer(tmp_path / "data")
    shutil.copytree(prepared(), server.data_dir)
    server.give_room(None)
    secret, ledger = server.start().token(), Ledger(tmp_path / "ledger")
    server.give_room(10)

    answer = fill(server, secret, ledger)
    readable = server.request("GET", "/api/v1/conversations", token=secret)[0]
    server.give_room(None)
    until(lambda: fill(server, secret, ledger, most=1) is None, within=60, what="publishing")
    server.kill()
    ledger.file.close()

    assert answer is not None
    assert answer[0] == 503
    assert answer[1]["error"]["code"] == "unavailable"
    assert "full" in answer[1]["error"]["message"]
    assert readable == 200
    assert judge(server, ledger) > 0


def fill(server, secret, ledger, most=1000):
    """Publish until it is refused; return the refusal, None when there was none."""
    for _ in range(most):
        event_id = str(uuid.uuid4())
        payload = {"type": "message", "id": event_id, "conversation_id": "c", "content": "x" * 2000}
        status, body = server.publish(secret, "chat:c", payload, event_id)
        if status != 201:
            return status, body
        ledger.write("c", event_id, body["seq"])
    return None
