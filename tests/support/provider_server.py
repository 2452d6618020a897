"""A small server that answers like a model's provider: whole, cut short, silent, wrong. In the test's own loop."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

End = Literal["whole", "closed", "reset", "silent", "drip"]


class Answer(NamedTuple):
    """What to answer: `end` says how the body ends. `closed` looks like a proper end, `reset` breaks the chunks."""

    body: bytes = b""
    status: int = 200
    kind: str = "text/event-stream"
    headers: tuple[str, ...] = ()
    end: End = "whole"


class Asked(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ProviderServer:
    """Serve on loopback while entered. `answer(n, request)` decides, n counting requests from 0; None hangs up."""

    def __init__(self, answer: Callable[[int, Asked], Answer | None]) -> None:
        self.requests: list[Asked] = []
        self._answer = answer
        self._open: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The base address for OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            self.requests.append(request)
            answer = self._answer(len(self.requests) - 1, request)
            if answer is not None:
                await _write(writer, answer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            writer.close()


@contextmanager
def served_apart(answer: Callable[[int, Asked], Answer | None]) -> Iterator[ProviderServer]:
    """Serve in a thread of its own, for tests that have no loop."""
    server, is_there, ends = ProviderServer(answer), threading.Event(), threading.Event()

    async def serve() -> None:
        async with server:
            is_there.set()
            await asyncio.to_thread(ends.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert is_there.wait(60)
    try:
        yield server
    finally:
        ends.set()
        thread.join(60)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(head[0].split(" ")[1], headers, json.loads(body or b"{}"))


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    is_chunked = answer.end == "reset"
    lines = [f"HTTP/1.1 {answer.status} X", f"Content-Type: {answer.kind}", "Connection: close", *answer.headers]
    if answer.end == "whole":
        lines.append(f"Content-Length: {len(answer.body)}")
    if is_chunked:
        lines.append("Transfer-Encoding: chunked")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    if is_chunked and answer.body:
        writer.write(b"%x\r\n%b\r\n" % (len(answer.body), answer.body))
    elif not is_chunked:
        writer.write(answer.body)
    await writer.drain()
    while answer.end in ("silent", "drip"):
        await asyncio.sleep(0.05)
        if answer.end == "drip":
            writer.write(b": still here\n")
            await writer.drain()
