"""A server that has not started yet: readiness says so, and every address has its clients try again, never 404."""

import asyncio
import json
from typing import Any

import pytest

from dashboard.asgi import Application

BROWSER = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

pytestmark = pytest.mark.django_db(transaction=True)


def response_of(
    application: Application, method: str, path: str, accept: bytes = b"*/*"
) -> tuple[int, dict[bytes, bytes], Any]:
    """Return status, headers and body of one request; of JSON what it says."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [(b"host", b"127.0.0.1"), (b"accept", accept)], "client": ("10.0.0.1", 1),
             "scheme": "http"}  # fmt: skip
    asyncio.run(application(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    headers = dict(sent[0]["headers"])
    is_json = headers[b"content-type"] == b"application/json"
    return sent[0]["status"], headers, json.loads(body) if is_json else body.decode()


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


@pytest.mark.parametrize(
    ("state", "reason"), [("starting", None), ("a <b>database</b>", "A &lt;b&gt;database&lt;/b&gt;.")]
)
def test_a_browser_gets_a_page_while_it_starts(state, reason):
    application = Application()
    application.runtime.state = state

    status, headers, html = response_of(application, "GET", "/conversations/x/", BROWSER)

    assert (status, headers[b"retry-after"], headers[b"cache-control"]) == (503, b"1", b"no-store")
    assert b"default-src 'none'" in headers[b"content-security-policy"]
    assert "The server is starting" in html
    assert int(headers[b"content-length"]) == len(html.encode())
    assert reason is None or reason in html


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/conversations"), ("POST", "/sign-in/")])
def test_only_pages_are_answered_with_a_page_while_it_starts(method, path):
    _, headers, body = response_of(Application(), method, path, BROWSER)

    assert (headers[b"content-type"], set(body)) == (b"application/json", {"error"})
