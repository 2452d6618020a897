"""A server that has not started yet: readiness says so, and every address has its clients try again, never 404."""

import asyncio
import json
from typing import Any

import pytest

from dashboard.asgi import Application

pytestmark = pytest.mark.django_db(transaction=True)


def response_of(application: Application, method: str, path: str) -> tuple[int, dict[bytes, bytes], Any]:
    """Return status, headers and JSON of one request."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [(b"host", b"127.0.0.1")], "client": ("10.0.0.1", 1), "scheme": "http"}  # fmt: skip
    asyncio.run(application(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(body)


def test_readiness_says_that_it_starts():
    status, _, body = response_of(Application(), "GET", "/readyz")

    assert (status, body["ok"], "server" in body["not_ready"]) == (503, False, True)
    assert response_of(Application(), "GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/responses"),
        ("GET", "/v1/models"),
        ("GET", "/v1/nowhere"),
        ("POST", "/api/v1/publish"),
        ("GET", "/api/v1/conversations"),
        ("POST", "/api/v1/import"),
        ("GET", "/conversations/"),
    ],
)
def test_clients_try_again_while_it_starts(method, path):
    status, headers, body = response_of(Application(), method, path)

    assert (status, headers[b"retry-after"]) == (503, b"1")
    assert headers[b"content-type"] == b"application/json"
    assert set(body) == {"error"}
    if path.startswith("/v1/"):
        assert {"message", "type", "code"} <= set(body["error"])
