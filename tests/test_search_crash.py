"""SIGKILL in the middle of indexing: the next start goes on where the last transaction ended, and skips nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import Server, on_postgresql, until
from tests.services import PostgresServer, running
from tests.shares import amount_of

MESSAGES = 400


def said(number: int) -> dict[str, Any]:
    """Make a message with a word of its own."""
    body = {"type": "message", "conversation_id": f"c{number % 7}", "sender": "agent:A", "recipient": "user"}
    return {"topic": f"chat:c{number % 7}", "payload": body | {"content": f"refund number{number}"}}


def publish(server: Server, token: str, first: int) -> None:
    """Publish all at once."""
    body = {"messages": [said(first + number) for number in range(MESSAGES)]}
    status, answer = server.request("POST", "/api/v1/publish", json.dumps(body).encode(), token)
    assert status == 200, answer


def found(server: Server, token: str, q: str) -> list[str]:
    """Search over as many pages as it takes; answer the texts found, none twice."""
    texts: list[str] = []
    before = ""
    while True:
        path = f"/api/v1/search?q={quote(q)}&limit=200&before={before}"
        status, answer = server.request("GET", path, token=token)
        assert status == 200, answer
        texts += [item["excerpts"][0]["text"] for item in answer["items"]]
        if (before := answer["cursor"]) is None:
            return texts


def lag(server: Server) -> int:
    """Look into the database itself how far the index is."""
    with closing(server.database()) as database:
        rows = database.execute(
            "SELECT COALESCE(SUM(head_seq-indexed_seq),0) FROM conversations_conversation"
        ).fetchall()
    return int(rows[0][0])


def kill_while_indexing(server: Server, kills: int) -> None:
    """Kill it at the commit of a batch, again and again, with more to index each time; then let it come to an end."""
    token = ""
    for kill in range(kills):
        server.environment["SWITCHBOARD_FAILPOINT"] = f"before-index-commit:{1 + kill % 3}"
        server.start()
        token = token or server.token()
        with contextlib.suppress(OSError, http.client.HTTPException):  # it dies after it stored, maybe unanswered
            publish(server, token, kill * MESSAGES)
        until(lambda: server.process.poll() is not None or not lag(server), within=60, what="death at a commit")
        assert server.process.poll() in (None, -9), server.output()[-2000:]
        server.kill()
    del server.environment["SWITCHBOARD_FAILPOINT"]
    server.start()
    until(lambda: not lag(server), within=60, what="the index to catch up")

    texts = found(server, token, "refund")

    assert sorted(texts) == sorted(f"refund number{number}" for number in range(kills * MESSAGES))
    assert found(server, token, "number7") == ["refund number7"]
    server.terminate()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Callable[[], dict[str, str]]:
    """Answer what makes a server use this kind of database."""
    if request.param == "sqlite":
        return dict
    cluster = request.getfixturevalue("cluster")
    return lambda: on_postgresql(cluster.create("searchcrash"))


@pytest.fixture(scope="module")
def cluster() -> Any:
    with running(PostgresServer()) as server:
        yield server


@pytest.mark.crash
def test_nothing_is_missing_from_the_index_after_a_kill(tmp_path):
    kill_while_indexing(Server(tmp_path / "data", SWITCHBOARD_TEAMS=""), 1)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_nothing_is_missing_from_the_index_after_many_kills(tmp_path, database, record_property):
    kills = amount_of(40)
    kill_while_indexing(Server(tmp_path / "data", SWITCHBOARD_TEAMS="", **database()), kills)

    record_property("amount", f"{kills} kills while indexing, nothing missing, nothing twice")
