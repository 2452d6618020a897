"""The parts that raw ASGI routes share: methods, size limits for bodies, JSON responses, bearer tokens, and errors as
in §3.6."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any
from urllib.parse import parse_qsl

from conversations.access.origin_check import address_of
from conversations.core.client_network import client_network
from conversations.core.errors import RETRY_STATUSES, Invalid, MethodNotAllowed, SwitchboardError, TooLarge
from conversations.core.held_bodies import held_bodies

NO_PAGE_POLICY = "default-src 'none'; frame-ancestors 'none'"  # the Content-Security-Policy of what is not a page
JSON = b"application/json"
FIXED = (
    (b"content-type", JSON),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", NO_PAGE_POLICY.encode()),
)
_LINES = b"".join(b"%b: %b\r\n" % pair for pair in FIXED)
LARGE = 64 << 10  # bytes; what has more is copied, read and written in a thread
RETRY_AFTER = (b"retry-after", b"1")  # seconds
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]
Refuse = Callable[[Send, SwitchboardError], Awaitable[None]]

logger = logging.getLogger(__name__)


class Route:
    """The route of one URL: a method not in `methods` gets 405, an error of our hierarchy raised by `handle` its
    status.

    `handle` returns a status and JSON.
    """

    methods: tuple[str, ...] = ("GET", "HEAD")

    async def handle(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        """Handle the request."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            if scope["method"] not in self.methods:
                raise MethodNotAllowed(self.methods)
            status, payload = await self.handle(scope, receive)
        except SwitchboardError as error:
            self.count(error.status)
            await refuse(send, error)
        else:
            self.count(status)
            if not _write_at_once(scope, status, payload):
                await answer(send, status, payload)

    def count(self, status: int) -> None:
        """Count a response by its status, where somebody wants to know."""


def announced_size(scope: Scope, limit: int) -> int:
    """Return how many bytes a request's body has, as its header says; the limit for one in chunks. Raises TooLarge
    above the limit."""
    content_length = header(scope, b"content-length")
    if len(content_length) > 18 or (content_length and int(content_length) > limit):
        raise too_large(limit)
    return int(content_length or limit)


async def body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Read a request's body. Raises TooLarge as soon as it exceeds, or announces that it will exceed, the limit
    (bytes); Invalid if the client disconnects; Busy while too much is being received."""
    announced_size(scope, limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        if len(whole) > limit:
            raise too_large(limit)
        return whole
    parts, size = [], 0
    with held_bodies.counting(client_network(address_of(scope))) as resize:
        while True:
            if message["type"] == "http.disconnect":
                raise Invalid("the request body is incomplete")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise too_large(limit)
            resize(size)
            parts.append(part)
            if not message.get("more_body", False):
                return await _join_parts(parts, size)
            message = await receive()


async def _join_parts(parts: list[bytes], size: int) -> bytes:
    """Join the parts of a body; in a thread if it is large, since copying 8 MiB takes 5 ms."""
    if size < LARGE:
        return b"".join(parts)
    return await asyncio.get_running_loop().run_in_executor(None, b"".join, parts)


def too_large(limit: int) -> TooLarge:
    """Return the error for a body above the limit (bytes)."""
    return TooLarge(f"the request must be at most {limit:,} bytes")


async def answer(
    send: Send, status: int, payload: bytes, *headers: tuple[bytes, bytes], content_type: bytes = JSON
) -> None:
    """Send a complete response. The server leaves out the body of one to HEAD."""
    fixed = [(b"content-type", content_type), *FIXED[1:], (b"content-length", b"%d" % len(payload))]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": payload})


def _write_at_once(scope: Scope, status: int, payload: bytes) -> bool:
    """Write a complete JSON response past `send`, if it is small and the server can; return whether it did. It has the
    headers of `answer`, and the request's id, which is otherwise added on the way."""
    write = (scope.get("extensions") or {}).get("http.write_response")
    if write is None or len(payload) > LARGE or (number := scope.get("request_id")) is None:
        return False
    head = b"%bcontent-length: %d\r\nx-request-id: %b\r\n" % (_LINES, len(payload), number.encode())
    return bool(write(scope, status, head, payload))


async def refuse(send: Send, error: SwitchboardError) -> None:
    """Send an error as defined in §3.6. A client that is still sending gets it too: the server skips the rest of its
    body."""
    await answer(send, error.status, json.dumps({"error": error.as_dict()}).encode(), *headers_of(error))


async def guard(endpoint: Endpoint, scope: Scope, receive: Receive, send: Send, refuse: Refuse = refuse) -> None:
    """Serve one request with `endpoint`; an error raised before anything was sent is returned with a status, like
    `refuse`. Raises later errors, and OSError if the client disconnects."""
    has_started = False

    async def noting(message: dict[str, Any]) -> None:
        nonlocal has_started
        has_started = True
        await send(message)

    try:
        await endpoint(scope, receive, noting)
    except OSError:
        raise
    except Exception as error:
        if has_started:
            raise
        if not isinstance(error, SwitchboardError):
            logger.exception("%s %s", scope["method"], scope["path"])
            error = SwitchboardError("internal server error", code="server_error")
        await refuse(send, error)


def headers_of(error: SwitchboardError) -> list[tuple[bytes, bytes]]:
    """Return the headers for an error's status."""
    headers: list[tuple[bytes, bytes]] = []
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.status in RETRY_STATUSES:
        headers.append(RETRY_AFTER)
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allowed.encode()))
    return headers


def header(scope: Scope, header_name: bytes) -> bytes:
    """Return a header by its lower-case name; the last one if repeated, empty if missing."""
    last_value = b""
    for name, value in scope["headers"]:
        if name == header_name:
            last_value = value
    return last_value


def bearer(scope: Scope) -> str:
    """Return the bearer token of a request, or an empty string."""
    scheme, _, secret = header(scope, b"authorization").decode("latin-1").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def query(scope: Scope, *, ignored: Collection[str] = ()) -> dict[str, str]:
    """Return the query parameters but the `ignored` ones. Raises Invalid if one is repeated or not UTF-8."""
    try:
        pairs = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise Invalid(f"the query must be UTF-8: {error}") from None
    pairs = [(name, value) for name, value in pairs if name not in ignored]
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Invalid("each query parameter must be given only once")
    return fields
