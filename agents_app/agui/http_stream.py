"""One POST whose answer is a stream: to a checked address (`outbound_address`), no redirect followed, no proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

import httptools

from conversations.core import http_post, outbound_address
from conversations.core.http_post import ParsedAnswer, PostFailed
from conversations.core.outbound_address import AddressRefused, AllowList

CHUNK = 64 << 10
MAX_REASON = 2000  # bytes of an answer that refuses


class RemoteFailed(Exception):
    """The remote agent could not be asked, or did not answer as it should; the words are for people."""


async def post(
    url: str, headers: Mapping[str, str], body: bytes, *, allowed: AllowList, connect_s: float, silence_s: float
) -> AsyncIterator[bytes]:
    """Send it; return the answer's body in pieces. Raises RemoteFailed."""
    to = outbound_address.parse(url)
    headers = {"Accept": "text/event-stream", **headers}
    try:
        async with AsyncExitStack() as connected:
            async with asyncio.timeout(connect_s):
                request = http_post.sent(to, headers, body, allowed=allowed, within_s=connect_s)
                reader = await connected.enter_async_context(request)
            async for piece in _answer(reader, silence_s):
                yield piece
    except AddressRefused as error:
        raise RemoteFailed(str(error).replace("SWITCHBOARD_ALERT_HOSTS", "SWITCHBOARD_AGUI_HOSTS")) from None
    except PostFailed as error:
        raise RemoteFailed(str(error)) from None
    except TimeoutError:
        raise RemoteFailed(f"{to.host} cannot be reached within {connect_s:g} s") from None
    except ssl.SSLError as error:
        raise RemoteFailed(f"TLS with {to.host} failed: {error.reason or error}") from None
    except OSError as error:
        raise RemoteFailed(f"the connection to {to.host} failed: {http_post.reason_of(error)}") from None


async def _answer(reader: asyncio.StreamReader, silence_s: float) -> AsyncIterator[bytes]:
    head = ParsedAnswer()
    while not head.is_over:
        try:
            async with asyncio.timeout(silence_s):
                data = await reader.read(CHUNK)
        except TimeoutError:
            raise RemoteFailed(f"nothing was sent for {silence_s:g} s") from None
        if not data and head.status == 200:
            return  # whoever reads the stream knows whether it is whole
        if not data:
            raise _refused(head)
        head.bytes_without_body += len(data)
        try:
            head.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            raise RemoteFailed("the answer is not HTTP") from None
        if head.bytes_without_body > http_post.MAX_ANSWER:
            raise RemoteFailed(f"the response is too long: over {http_post.MAX_ANSWER >> 10} kB without its body")
        if head.status == 200 and head.content_type != "text/event-stream":
            raise RemoteFailed(f"the response has the type {head.content_type[:80] or 'none'}, not text/event-stream")
        if head.status == 200 and (piece := head.take_body()):
            yield piece
        if head.status not in (0, 200) and (head.is_over or len(head.body) > MAX_REASON):
            raise _refused(head)


def _refused(head: ParsedAnswer) -> RemoteFailed:
    """Word an answer that is not a stream."""
    if not head.status:
        return RemoteFailed("the connection was closed without an answer")
    reason = head.take_body()[:MAX_REASON].decode("utf-8", "replace").strip()
    return RemoteFailed(f"it answered {head.status}{f': {reason}' if reason else ''}")
