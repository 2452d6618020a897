"""A server with its doors, for tests of what comes in and goes out over HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple

from conversations.models.people import ROLES
from tests.support.live import Server


class Answer(NamedTuple):
    """An answer: its status, its headers and what its JSON holds (None without any)."""

    status: int
    headers: dict[str, str]
    body: Any


def ask(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
    """Make one request; `Content_Type="…"` becomes `Content-Type`."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        is_json = answer.headers["Content-Type"] == "application/json"
        answer_headers = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, answer_headers, json.loads(text) if is_json and text else None)
    finally:
        connection.close()


class Caller:
    """The holder of one token at one server."""

    def __init__(self, server: Server, token: str) -> None:
        self.server, self.token = server, token

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Make one request with the token."""
        return ask(self.server, method, path, body, Authorization=f"Bearer {self.token}", **headers)

    def get(self, path: str) -> Answer:
        """Read something."""
        return self.ask("GET", path)

    def publish(self, topic: str, payload: Any, bus_id: str | None = None) -> Answer:
        """Publish one message."""
        return self.ask("POST", "/api/v1/publish", encode(message(topic, payload, bus_id)))

    def batch(self, *messages: Any) -> Answer:
        """Publish several as one JSON object."""
        return self.ask("POST", "/api/v1/publish", encode({"messages": messages}))

    def lines(self, *lines: bytes) -> Answer:
        """Publish several as NDJSON."""
        return self.ask("POST", "/api/v1/publish", b"\n".join(lines), Content_Type="application/x-ndjson")


def make_tokens(server: Server, **agents: str) -> dict[str, Caller]:
    """Make a token of each role and one of each agent (`name="Agent"`), by one command."""
    roles = (*ROLES, "telemetry")
    lines = [f"tokens.make_token(SYSTEM, {role!r}, {role!r})" for role in roles]
    lines += [f"tokens.make_token(SYSTEM, {name!r}, 'agent', agent={agent!r})" for name, agent in agents.items()]
    imports = "from conversations.access.accounts import tokens\nfrom conversations.core.principals import SYSTEM"
    made = server.command("shell", "--no-imports", "-c", f"{imports}\nprint({', '.join(lines)})").split()
    return {name: Caller(server, secret) for name, secret in zip((*roles, *agents), made, strict=True)}


def encode(value: Any) -> bytes:
    """Write it as JSON."""
    return json.dumps(value).encode()


def message(topic: str, payload: Any, bus_id: str | None = None) -> dict[str, Any]:
    """Make one message."""
    return {"topic": topic, "payload": payload} | ({"id": bus_id} if bus_id else {})


def token(conversation: str, index: int, bus_id: str | None = None, **more: Any) -> dict[str, Any]:
    """Make a message of one token, whose word is its index."""
    payload = {"event": "token", "conversation_id": conversation, "text": f"{index} ", "index": index} | more
    return message(f"stream:{conversation}", payload, bus_id)


def message_payload(conversation: str, content: str, **more: Any) -> dict[str, Any]:
    """Make the payload of an envelope."""
    envelope = {"type": "message", "conversation_id": conversation, "sender": "agent:A", "recipient": "agent:B"}
    return envelope | {"content": content} | more


def events_of(server: Server, conversation: str) -> list[tuple[int, str, dict[str, Any]]]:
    """Read a conversation's events from the server's file: seq, kind, body."""
    sql = (
        "SELECT seq,kind,body FROM conversations_event WHERE conversation_id="
        "(SELECT id FROM conversations_conversation WHERE key=?) ORDER BY seq"
    )
    return [(seq, kind, json.loads(body)) for seq, kind, body in server.rows(sql, [conversation])]
