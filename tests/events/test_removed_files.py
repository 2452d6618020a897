"""SQLite's files are removed or replaced under a running server: it acknowledges nothing that a kill would lose."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from tests.support.live import Server, until

NAME = "switchboard.sqlite3"


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "data", SWITCHBOARD_TEAMS="").start()
    yield made
    made.kill()


def remove_log(data_dir):
    (data_dir / f"{NAME}-wal").unlink()
    (data_dir / f"{NAME}-shm").unlink()


def replace_file(data_dir):
    shutil.copy2(data_dir / NAME, data_dir / "copy")
    (data_dir / "copy").replace(data_dir / NAME)


def publish(server, secret, text):
    payload = {"type": "message", "conversation_id": "c", "sender": "agent:A", "content": text}
    return server.request(
        "POST", "/api/v1/publish", json.dumps({"topic": "chat:c", "payload": payload}).encode(), secret
    )


def steer(server, secret):
    return server.request("POST", "/api/v1/conversations/c/control", b'{"action": "pause"}', secret)


@pytest.mark.parametrize("harm", [remove_log, replace_file])
def test_a_server_whose_files_are_gone_stores_nothing_more_and_says_why(server, harm):
    secret = server.token()
    acknowledged = [publish(server, secret, str(n))[0] for n in range(5)]

    harm(server.data_dir)
    _, ready = until(
        lambda: (answer := server.request("GET", "/readyz"))[0] == 503 and answer, within=20, what="it to be noticed"
    )
    refused, steered = publish(server, secret, "late"), steer(server, secret)
    ended = server.terminate()

    assert acknowledged == [201] * 5
    assert "writer" in ready["not_ready"]
    assert "restart it" in ready["parts"]["writer"]
    assert (refused[0], steered[0]) == (503, 503)
    assert "removed or replaced" in refused[1]["error"]["message"]
    assert ended == -15
    assert server.output().count("restart it") < 20, "it is not told every second"
    if harm is remove_log:
        with closing(sqlite3.connect(server.data_dir / NAME)) as database:
            rows = database.execute("SELECT seq FROM conversations_event ORDER BY seq").fetchall()
        assert rows == [(n,) for n in range(1, 6)], "an orderly stop writes the removed log into the file"
