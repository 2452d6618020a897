"""Send one POST to a checked address: no redirects, no proxies, and only the status of the answer counts."""

import asyncio
import functools
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import httptools

from conversations.core import outbound_address
from conversations.core.outbound_address import AllowList, OutboundUrl

MAX_ANSWER = 16 << 10  # bytes until the end of the headers
CHUNK = 4 << 10

Resolve = Callable[[str, int], Awaitable[list[str]]]


class Answer(NamedTuple):
    """A receiver's answer: its status, and the seconds until a retry if it says so."""

    status: int
    retry_after_s: int | None = None
    body: bytes = b""  # where it was asked for


class PostFailed(Exception):
    """There was no answer; the text is for the admin."""


async def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of a host, in the order to try. Raises PostFailed."""
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise PostFailed(f"{host} cannot be resolved: {getattr(error, 'strerror', None) or error}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in rows))


async def post(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    allowed: AllowList,
    timeout_s: float,
    resolver: Resolve = resolve,
    reads_body: bool = False,
) -> Answer:
    """Send a POST. `reads_body`: the answer, at most 16 KiB, is read to its end. Raises PostFailed, or AddressRefused
    if nothing may be sent there."""
    to = outbound_address.parse(url)
    try:
        async with asyncio.timeout(timeout_s):
            async with sent(to, headers, body, allowed=allowed, within_s=timeout_s, resolver=resolver) as reader:
                return await _answer(reader, reads_body=reads_body)
    except TimeoutError:
        raise PostFailed(f"no answer within {timeout_s:g} s") from None
    except ssl.SSLError as error:
        raise PostFailed(f"TLS failed: {error.reason or error}") from None
    except OSError as error:
        raise PostFailed(f"the connection failed: {reason_of(error)}") from None


def reason_of(error: OSError) -> str:
    """Return why a connection failed; an error without a text, such as of an end during the handshake, by its name."""
    return error.strerror or str(error) or type(error).__name__


@asynccontextmanager
async def sent(
    to: OutboundUrl,
    headers: Mapping[str, str],
    body: bytes,
    *,
    allowed: AllowList,
    within_s: float,
    resolver: Resolve = resolve,
) -> AsyncIterator[asyncio.StreamReader]:
    """Send a request and yield the reader of its answer. The caller ends this after `within_s` seconds; until then,
    each address of the host gets a share. Raises PostFailed, OSError, or AddressRefused."""
    until = asyncio.get_running_loop().time() + within_s
    addresses = outbound_address.check(to, await resolver(to.host, to.port), allowed)
    reader, writer = await _connect(to, addresses, until)
    try:
        writer.write(_request(to, headers, body))
        await writer.drain()
        yield reader
    finally:
        writer.transport.abort()


async def _connect(
    to: OutboundUrl, addresses: list[str], until: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts a connection. All but the last get an equal share of the time left,
    with one more for the answer."""
    failure: OSError | None = None
    tls, name = (_tls(), to.host) if to.scheme == "https" else (None, None)
    for left in range(len(addresses), 0, -1):
        share_s = (until - asyncio.get_running_loop().time()) / (left + 1) if left > 1 else None
        try:
            async with asyncio.timeout(share_s):
                return await asyncio.open_connection(
                    addresses[-left], to.port, limit=MAX_ANSWER, ssl=tls, server_hostname=name
                )
        except OSError as error:  # a TimeoutError, too
            failure = error
    raise failure or PostFailed("no address")


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _request(to: OutboundUrl, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a request as bytes. Header values are ours or an operator's: ids, numbers, base64, a bearer token."""
    lines = [f"POST {to.target} HTTP/1.1", f"Host: {to.host_header}"]
    fields = {"Content-Type": "application/json", "User-Agent": "Switchboard", "Accept": "*/*", **headers}
    fields |= {"Content-Length": str(len(body)), "Connection": "close"}
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


class ParsedAnswer:
    """What httptools parses of an answer. Also of one that is a stream (`agents_app.agui.http_stream`)."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status = 0  # while only a 1xx precedes the final one
        self.content_type = ""
        self.retry_after_s: int | None = None
        self.body = bytearray()
        self.bytes_without_body = 0  # since the last piece of it: headers, trailers, announcements
        self.is_over = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the content type and Retry-After; trailers do not count."""
        if self.status:
            return
        if name.lower() == b"content-type":
            self.content_type = value.decode("latin-1").partition(";")[0].strip().lower()
        elif name.lower() == b"retry-after" and value.isdigit() and len(value) < 8:
            self.retry_after_s = int(value)

    def on_headers_complete(self) -> None:
        """Keep the status, unless it is a 1xx that precedes the final one."""
        if (status := self.parser.get_status_code()) >= 200 and not self.status:
            self.status = status

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self.body += data
        self.bytes_without_body = 0

    def on_message_complete(self) -> None:
        """Note the end of the answer, unless it is a 1xx."""
        self.is_over = self.status > 0

    def take_body(self) -> bytes:
        """Return what came of the body since."""
        data, self.body = bytes(self.body), bytearray()
        return data


async def _answer(reader: asyncio.StreamReader, *, reads_body: bool) -> Answer:
    head, size = ParsedAnswer(), 0
    while not head.status or (reads_body and not head.is_over):
        data = await reader.read(CHUNK)
        size += len(data)
        if not data and head.status:
            break  # the end of the connection is that of the body
        if not data or size > MAX_ANSWER:
            raise PostFailed("the answer is not HTTP" if data else "the connection was closed without an answer")
        try:
            head.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not head.status:
                raise PostFailed("the answer is not HTTP") from None
    return Answer(head.status, head.retry_after_s, bytes(head.body) if reads_body else b"")
