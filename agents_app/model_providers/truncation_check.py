"""An HTTP transport that notices a Chat Completions stream cut short, and bounds what is read at once. Without it a
truncated answer looks finished: the SDK makes a completed response of whatever came before a clean end of the
connection; and one endless line, or body, is held in memory until it ends."""

from collections.abc import AsyncIterator

import httpx2

_END = b"[DONE]"


class WholeStreams(httpx2.AsyncBaseTransport):
    """Pass requests on; a stream of `chat/completions` that ends without `[DONE]` ends as RemoteProtocolError, and so
    does one with a line, or a body that is not a stream, of more than `most` bytes."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, most: int) -> None:
        self._inner, self._most = inner, most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the inner transport's response, its stream watched."""
        response = await self._inner.handle_async_request(request)
        kind = response.headers.get("content-type", "")
        is_stream = kind.startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Limited(response.stream, self._most, by_line=is_stream)
        is_plain = response.headers.get("content-encoding", "identity") == "identity"
        if is_plain and is_stream and request.url.path.endswith("/chat/completions"):
            response.stream = _Watched(response.stream)
        return response

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self._inner.aclose()


class _Limited(httpx2.AsyncByteStream):
    """A body of which no more than some bytes come without an end: of a line, or of the body."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, *, by_line: bool) -> None:
        self._inner, self._most, self._by_line = inner, most, by_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            end = chunk.rfind(b"\n") if self._by_line else -1
            size = size + len(chunk) if end < 0 else len(chunk) - end
            if size > self._most:
                what = "an event" if self._by_line else "an answer"
                raise httpx2.RemoteProtocolError(f"the server sent {what} of more than {self._most:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Watched(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        tail, is_blank = b"", True
        async for chunk in self._inner:
            tail = (tail + chunk)[-64:]
            is_blank = is_blank and b"{" not in chunk
            if is_blank and _END in tail:
                raise httpx2.RemoteProtocolError("the stream has an end mark and nothing before it")
            yield chunk
        if not tail.rstrip().endswith(_END):
            raise httpx2.RemoteProtocolError("the stream ended before its end mark [DONE]")

    async def aclose(self) -> None:
        await self._inner.aclose()
