"""Revoked is over for requests whose body is still on its way: what comes after the revocation is not taken, by any
route and with any token, without a notification, and though another token has its name by then."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.doors import Caller, encode
from tests.support.live import Server, until
from tests.support.otlp import JSON, PROTOBUF, span, traces
from tests.support.revocation import LAW, holder, pause_until, revoke, rotate
from tests.support.tiers import variants

LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Upload:
    """A request: whose token sends it, the route, and its body for a conversation."""

    role: str
    path: str
    kind: str

    def body(self, key: str) -> bytes:
        """Write its body."""
        message = {"topic": f"stream:{key}", "payload": {"event": "log", "conversation_id": key, "text": "late"}}
        match self.path.rpartition("/")[2]:
            case "publish":
                return encode(message) + (b"\n" if self.kind == LINES else b"")
            case "import":
                return b"\n".join(map(encode, ({"conversation": key}, {"payload": message["payload"]}, {"end": 1})))
            case "traces":
                return traces(span("chat", {"gen_ai.conversation.id": key, "gen_ai.operation.name": "chat"}, trace=910))
            case "requests":
                return encode({"conversation_id": key, "agent": "Late", "name": "wipe", "tool_call_id": "c1"})
            case "compact":
                return encode({"model": "Nobody", "input": key})
            case _:
                hook = {"session_id": key, "hook_event_name": "UserPromptSubmit", "prompt": "late", "cwd": "/srv"}
                return encode(hook | {"transcript_path": "a.jsonl", "permission_mode": "default"})


UPLOADS = (
    Upload("telemetry", "/v1/traces", PROTOBUF),
    Upload("admin", "/api/v1/publish", JSON),
    Upload("agent", "/api/v1/hooks/claude-code", JSON),
    Upload("agent", "/api/v1/approvals/requests", JSON),
    Upload("admin", "/api/v1/import", LINES),
    Upload("agent", "/api/v1/publish", LINES),
    Upload("agent", "/api/v1/publish", JSON),
    Upload("agent", "/api/v1/hooks/codex", JSON),
    Upload("admin", "/v1/traces", PROTOBUF),
)


def named(upload: Upload) -> str:
    """Name a request for people and for conversations."""
    return f"{upload.role}-{upload.path.strip('/').replace('/', '-')}-{upload.kind.rpartition('/')[2]}"


def is_used(server: Server, name: str) -> bool:
    """Return whether a request with this token was let in."""
    rows = server.rows("SELECT last_used_at FROM conversations_token WHERE name=?", [name])
    return rows[0][0] is not None


def sent_around(caller: Caller, upload: Upload, body: bytes, name: str, end: Callable[[], float]) -> int:
    """Send half of it, end the token, send the rest when that is over; return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", caller.server.port, timeout=60)
    try:
        connection.putrequest("POST", upload.path)
        for header in (("Authorization", f"Bearer {caller.token}"), ("Content-Type", upload.kind)):
            connection.putheader(*header)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[: len(body) // 2])
        until(lambda: is_used(caller.server, name), what="the request to be let in")
        pause_until(end() + LAW)
        connection.send(body[len(body) // 2 :])
        return connection.getresponse().status
    finally:
        connection.close()


def stored(server: Server, name: str) -> int:
    """Count what this token, or an import of its name, has stored."""
    sql = "SELECT COUNT(*) FROM conversations_event WHERE principal IN (?,?)"
    ((count,),) = server.rows(sql, [f"token:{name}", f"import:{name}"])
    return int(count)


@pytest.mark.parametrize("upload", variants(UPLOADS, quick=4), ids=[named(upload) for upload in UPLOADS])
def test_a_body_that_comes_after_the_revocation_is_not_taken(server: Server, upload: Upload) -> None:
    name = f"late-{named(upload)}"
    sender = holder(server, name, upload.role, agent="Late" if upload.role == "agent" else "")

    assert sent_around(sender, upload, upload.body(name), name, lambda: revoke(server, name)) == 401

    assert stored(server, name) == 0


@pytest.mark.parametrize("upload", variants(UPLOADS, quick=4), ids=[named(upload) for upload in UPLOADS])
def test_a_body_under_the_old_secret_of_a_rotated_token_is_not_taken(server: Server, upload: Upload) -> None:
    name, agent = f"old-{named(upload)}", "Late" if upload.role == "agent" else ""
    sender = holder(server, name, upload.role, agent=agent)

    assert sent_around(sender, upload, upload.body(name), name, lambda: rotate(server, name, upload.role, agent)) == 401

    assert stored(server, name) == 0


def test_a_conversation_is_not_compacted_for_a_revoked_token(server: Server) -> None:
    upload = Upload("operator", "/v1/responses/compact", JSON)
    sender = holder(server, "compacter", upload.role)

    assert sent_around(sender, upload, upload.body("k"), "compacter", lambda: revoke(server, "compacter")) == 401


@pytest.mark.parametrize("upload", variants(UPLOADS, quick=1), ids=[named(upload) for upload in UPLOADS])
def test_the_same_body_is_taken_while_the_token_is_good(server: Server, upload: Upload) -> None:
    name = f"good-{named(upload)}"
    sender = holder(server, name, upload.role, agent="Late" if upload.role == "agent" else "")
    path = f"{upload.path}?wait_s=0" if upload.path.endswith("requests") else upload.path

    answer = sender.ask("POST", path, upload.body(name), Content_Type=upload.kind)

    assert (answer.status < 300, stored(server, name) > 0) == (True, True), answer
