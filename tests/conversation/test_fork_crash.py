"""A server that is killed while it copies: nothing half done is seen, and the same request makes the fork then."""

import http.client
from pathlib import Path

import pytest

from tests.support.live import Server

FORKS, ASKED = "/api/v1/conversations/c/forks", b'{"at": 3, "client_id": "once"}'


def publish(server: Server, token: str, *words: str) -> None:
    for n, text in enumerate(words):
        payload = {"type": "message", "conversation_id": "c", "sender": "agent:A", "recipient": "user", "content": text}
        assert server.publish(token, "chat:c", payload, f"m{n}")[0] == 201


@pytest.mark.thorough
@pytest.mark.crash
def test_a_fork_that_a_kill_cut_off_is_not_there_and_can_be_made_again(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", SWITCHBOARD_TEAMS="", SWITCHBOARD_FAILPOINT="before-fork:1").start()
    token = server.token()
    publish(server, token, "one", "two", "three")
    with pytest.raises((OSError, http.client.HTTPException)):
        server.request("POST", FORKS, ASKED, token)
    assert server.process is not None
    server.process.wait(60)  # it killed itself at the failpoint

    server.environment.pop("SWITCHBOARD_FAILPOINT")
    server.start()
    try:
        _, listed = server.request("GET", "/api/v1/conversations", token=token)
        (_, made), (_, again) = (server.request("POST", FORKS, ASKED, token) for _ in range(2))
        stored = server.rows("SELECT COUNT(*) FROM conversations_event")[0][0]
    finally:
        server.terminate()

    assert [item["conversation_id"] for item in listed["items"]] == ["c"]
    assert made == again
    assert made["seq"] == 4
    assert stored == 3 + 4
