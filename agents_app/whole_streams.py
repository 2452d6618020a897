"""An HTTP transport that notices a Chat Completions stream cut short. Without it a truncated answer looks finished: the
SDK makes a completed response of whatever came before a clean end of the connection."""

from collections.abc import AsyncIterator

import httpx2

_END = b"[DONE]"


class WholeStreams(httpx2.AsyncBaseTransport):
    """Pass requests on; a stream of `chat/completions` that ends without `[DONE]` ends as RemoteProtocolError."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer the inner transport's response, its stream watched."""
        response = await self._inner.handle_async_request(request)
        kind = response.headers.get("content-type", "")
        is_plain = response.headers.get("content-encoding", "identity") == "identity"
        if is_plain and kind.startswith("text/event-stream") and request.url.path.endswith("/chat/completions"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Watched(response.stream)
        return response

    async def aclose(self) -> None:
        """Close the inner transport."""
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
