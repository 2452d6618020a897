"""The server's HTTP API (§3.6) as `HttpBus` uses it: persistent connections, and the meaning of responses."""

from __future__ import annotations

import http.client
import json
import ssl
from collections import deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from switchboard.bus import BusMessage
from switchboard.errors import IdReused, Refused, UnknownPosition, Unreachable

IDLE = 8  # connections kept
ONE_BY_ONE = (400, 413, 422)  # a batch refused as a whole for one of its messages
LATER = (408, 425, 429)
NOT_NOW = ("busy", "unavailable")  # codes of one message's error in a batch
_KINDS = {"unknown_position": UnknownPosition, "id_reused": IdReused}


class Api:
    """Calls to one server. Safe to use from many threads: each call has its own connection."""

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        self._tls = ssl.create_default_context() if urlsplit(url).scheme == "https" else None
        connection_to(url, timeout_s, self._tls)  # so that a wrong address is told here
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError("token must be a bearer token")
        self.url = url
        self._base = urlsplit(url).path.rstrip("/") + "/api/v1/"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._timeout_s = timeout_s
        self._idle: deque[http.client.HTTPConnection] = deque()

    def publish(self, lines: Sequence[bytes]) -> list[Refused | None]:
        """Send messages, each as JSON, in one request; return the error of each rejected one, after the commit.

        Raises `Unreachable` if the result is unknown: send all of them again; their ids prevent duplicates.
        """
        try:
            if len(lines) == 1:
                self._ask("POST", "publish", lines[0])
                return [None]
            return self._publish_batch(lines)
        except Refused as refusal:
            if len(lines) > 1 and refusal.status in ONE_BY_ONE:
                return [self.publish([line])[0] for line in lines]
            return [refusal] * len(lines)

    def publish_kept(self, lines: Sequence[bytes]) -> list[Refused | None]:
        """Send messages that the spool keeps, or will, as `publish` does. What refuses the request for none of them,
        such as a revoked token, raises `Unreachable`: they are still to be sent."""
        try:
            return self._publish_batch(lines)
        except Refused as refusal:
            if refusal.status not in ONE_BY_ONE:
                raise Unreachable(f"{self.url} responded with {refusal.status}: {refusal}") from refusal
            return [self.publish_kept([line])[0] for line in lines] if len(lines) > 1 else [refusal]

    def _publish_batch(self, lines: Sequence[bytes]) -> list[Refused | None]:
        messages = b",".join(line or b"null" for line in lines)  # a spool that was damaged may have an empty line
        items = self._ask("POST", "publish", b'{"messages":[' + messages + b"]}").get("items")
        errors = [item.get("error") for item in items] if isinstance(items, list) else []
        if len(errors) != len(lines) or any(error and error.get("code") in NOT_NOW for error in errors):
            raise Unreachable(f"{self.url} did not store all {len(lines)} messages")
        return [_refusal(0, error) if error else None for error in errors]

    def read(self, topic: str, last_id: str | None, limit: int, block_ms: int) -> list[BusMessage]:
        """Read a topic, waiting up to `block_ms` if it is not 0."""
        params = {"limit": limit} | ({"last_id": last_id} if last_id is not None else {})
        query = urlencode(params | ({"block_ms": block_ms} if block_ms else {}))
        path = f"topics/{quote(topic, safe='')}/messages?{query}"
        answer = self._ask("GET", path, wait_s=block_ms / 1000)
        return [BusMessage(item["topic"], item["payload"], item["id"]) for item in answer["items"]]

    def ask_approval(self, body: bytes, wait_s: int) -> dict[str, Any]:
        """Request approval of a call (repeating it continues the same request), and wait for the decision up to this
        time."""
        answer: dict[str, Any] = self._ask("POST", f"approvals/requests?wait_s={wait_s}", body, wait_s=wait_s)
        return answer

    def close(self) -> None:
        """Close the unused connections."""
        while self._idle:
            self._idle.pop().close()

    def _ask(self, method: str, path: str, body: bytes | None = None, wait_s: float = 0.0) -> Any:
        """Make one call. A persistent connection that the server has closed is not an error: the next one is tried."""
        while True:
            connection, is_kept = self._connection(self._timeout_s + wait_s)
            try:
                connection.request(method, self._base + path, body, self._headers)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if is_kept and not isinstance(error, TimeoutError):
                    continue
                raise Unreachable(f"{self.url} does not respond: {error or type(error).__name__}") from error
            if answer.will_close or len(self._idle) >= IDLE:
                connection.close()
            else:
                self._idle.append(connection)
            return _judge(self.url, answer, text)

    def _connection(self, timeout_s: float) -> tuple[http.client.HTTPConnection, bool]:
        try:
            connection = self._idle.pop()
        except IndexError:
            return connection_to(self.url, timeout_s, self._tls), False
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection, True


def connection_to(url: str, timeout_s: float, tls: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
    """Return a connection to a server, which is opened by its first request. Without `tls`, the server's certificate is
    verified, whatever `http.client` does by default in this process. Raises ValueError for a wrong address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"url must be http://… or https://…; got {url!r}")
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout_s, context=tls or ssl.create_default_context()
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def _judge(url: str, answer: http.client.HTTPResponse, text: bytes) -> Any:
    """Return the JSON of a successful response. Raises `Refused` for a permanent rejection; other errors may be
    temporary."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if 200 <= answer.status < 300 and isinstance(body, dict):
        return body
    error = body.get("error") if isinstance(body, dict) else None
    if answer.status == 413 and error is None:  # a proxy's
        error = {"code": "too_large", "message": "the request is too large"}
    if 400 <= answer.status < 500 and answer.status not in LATER and isinstance(error, dict):
        raise _refusal(answer.status, error)
    detail = error.get("message") if isinstance(error, dict) else answer.getheader("Location") or answer.reason
    raise Unreachable(f"{url} responded with {answer.status}: {detail}", retry_after_s=_retry_after(answer))


def _refusal(status: int, error: dict[str, Any]) -> Refused:
    code = str(error.get("code", "invalid"))
    refusal = _KINDS.get(code, Refused)(str(error.get("message", code)), code=code, field=error.get("field"))
    refusal.status = status or refusal.status
    return refusal


def _retry_after(answer: http.client.HTTPResponse) -> float:
    """Return Retry-After in seconds, at most a minute; a date is ignored."""
    value = answer.getheader("Retry-After", "")
    return min(60.0, float(value)) if value.isascii() and value.isdigit() and len(value) < 9 else 0.0
