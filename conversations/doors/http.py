"""Small things that raw ASGI routes share: a body within a limit, a JSON answer, a bearer."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from conversations.errors import Invalid, SwitchboardError, TooLarge
from conversations.origins import headers_of

FIXED = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Door = Callable[[Scope, Receive, Send], Awaitable[None]]


async def body(receive: Receive, limit: int) -> bytes:
    """Read a request's body. Raises TooLarge as soon as it passes the limit (bytes), Invalid when the client left."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Invalid("the request ended before its body")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise TooLarge(f"a request has at most {limit:,} bytes")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def answer(send: Send, status: int, payload: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a whole JSON answer."""
    length = (b"content-length", b"%d" % len(payload))
    await send({"type": "http.response.start", "status": status, "headers": [*FIXED, length, *headers]})
    await send({"type": "http.response.body", "body": payload})


async def refuse(send: Send, error: SwitchboardError) -> None:
    """Send an error as design 3.6 words it. The connection closes when the body was not read to its end."""
    payload = json.dumps({"error": error.as_dict()}).encode()
    headers = [(b"connection", b"close")] if isinstance(error, TooLarge) else []
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await answer(send, error.status, payload, *headers)


def bearer(scope: Scope) -> str:
    """Answer the bearer token of a request, or an empty text."""
    scheme, _, secret = headers_of(scope).get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""
