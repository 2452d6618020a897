"""A server that is killed while it copies: nothing half done is seen, and the same request makes the fork then."""

import http.client
import json
from pathlib import Path

import pytest

from tests.support.live import Server

ASKED = {"at": 3, "client_id": "once"}


def publish(server: Server, token: str, *words: str) -> None:
    for n, text in enumerate(words):
        payload = {"type": "message", "conversation_id": "c", "sender": "agent:A", "recipient": "user", "content": text}
        assert server.publish(token, "chat:c", payload, f"m{n}")[0] == 201


def ask(server: Server, token: str, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request(method, f"/api/v1/{path}", json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        answered: dict[str, object] = json.loads(answer.read())
        return answered
    finally:
        connection.close()


@pytest.mark.thorough
@pytest.mark.crash
def test_a_fork_that_a_kill_cut_off_is_not_there_and_can_be_made_again(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", SWITCHBOARD_TEAMS="", SWITCHBOARD_FAILPOINT="before-fork:1").start()
    token = server.token()
    publish(server, token, "one", "two", "three")
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(server, token, "POST", "conversations/c/forks", ASKED)
    assert server.process is not None
    server.process.wait(60)  # it killed itself at the failpoint

    server.environment.pop("SWITCHBOARD_FAILPOINT")
    server.start()
    try:
        keys = [item["conversation_id"] for item in ask(server, token, "GET", "conversations")["items"]]
        made, again = (ask(server, token, "POST", "conversations/c/forks", ASKED) for _ in range(2))
        with server.database() as database:
            stored = database.execute("SELECT COUNT(*) FROM conversations_event").fetchone()[0]
    finally:
        server.terminate()

    assert keys == ["c"]
    assert made == again
    assert made["seq"] == 4
    assert stored == 3 + 4
