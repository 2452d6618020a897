"""SIGKILL in the middle of indexing: the next start goes on where the last transaction ended, and skips nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.live import Server, on_postgresql, until
from tests.support.shares import amount_of

MESSAGES = 400


def message_body(number: int) -> dict[str, Any]:
    """Make a message with a word of its own."""
    body = {"type": "message", "conversation_id": f"c{number % 7}", "sender": "agent:A", "recipient": "user"}
    return {
        "topic": f"chat:c{number % 7}",
        "id": f"said-{number}",
        "payload": body | {"content": f"refund number{number}"},
    }


def publish(server: Server, token: str, first: int) -> None:
    """Publish all at once."""
    body = {"messages": [message_body(first + number) for number in range(MESSAGES)]}
    status, answer = server.request("POST", "/api/v1/publish", json.dumps(body).encode(), token)
    assert status == 200, answer


def found_texts(server: Server, token: str, q: str) -> list[str]:
    """Search over as many pages as it takes; return the texts found, none twice."""
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
    rows = server.rows("SELECT COALESCE(SUM(head_seq-indexed_seq),0) FROM conversations_conversation")
    return int(rows[0][0])


def kill_while_indexing(server: Server, kills: int) -> int:
    """Kill it at the commit of a batch, again and again, with more to index each time; then let it come to an end.

    What the one before left is indexed from the start on: it may die before it is ready, and is asked nothing then.
    Answers how often it died at a commit.
    """
    token, sent, died = "", 0, 0
    for kill in range(kills):
        server.environment["SWITCHBOARD_FAILPOINT"] = f"before-index-commit:{1 + kill % 3}"
        server.launch()
        until(lambda: server.process.poll() is not None or is_ready(server), within=60, what="a start or a death")
        if server.process.poll() is None:
            token = token or server.token()
            with contextlib.suppress(OSError, http.client.HTTPException):  # it dies, maybe before it stored them
                publish(server, token, sent)
            sent += MESSAGES
            until(lambda: server.process.poll() is not None or not lag(server), within=60, what="death at a commit")
        assert server.process.poll() in (None, -9), server.output()[-2000:]
        died += server.process.poll() is not None
        server.kill()
    del server.environment["SWITCHBOARD_FAILPOINT"]
    server.start()
    for first in range(0, sent, MESSAGES):
        publish(server, token, first)  # once more, by the same ids
    until(lambda: not lag(server), within=60, what="the index to catch up")

    texts = found_texts(server, token, "refund")

    assert sorted(texts) == sorted(f"refund number{number}" for number in range(sent))
    assert found_texts(server, token, "number7") == ["refund number7"]
    server.terminate()
    return died


def is_ready(server: Server) -> bool:
    """Return whether it answers."""
    try:
        return server.request("GET", "/readyz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Callable[[], dict[str, str]]:
    """Return what makes a server use this kind of database."""
    if request.param == "sqlite":
        return dict
    cluster = request.getfixturevalue("cluster")
    return lambda: on_postgresql(cluster.create("searchcrash"))


@pytest.mark.thorough
@pytest.mark.crash
def test_nothing_is_missing_from_the_index_after_a_kill(tmp_path):
    assert kill_while_indexing(Server(tmp_path / "data", SWITCHBOARD_TEAMS=""), 1) == 1


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_nothing_is_missing_from_the_index_after_many_kills(tmp_path, database, record_property):
    kills = amount_of(40)
    died = kill_while_indexing(Server(tmp_path / "data", SWITCHBOARD_TEAMS="", **database()), kills)

    record_property(
        "amount", f"{died} deaths at a commit of the index in {kills} starts, nothing missing, nothing twice"
    )
    assert died > kills // 2
