"""Who waits for something new on a topic: woken by commits, holding no thread. Used by the topic door."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from conversations.asgi import route
from conversations.events import commit_listeners
from conversations.events.log.records import Stored


class LongPoll:
    """The waiting of one process. It listens from the first one on, in the loop it was asked in."""

    def __init__(self) -> None:
        self._news: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def on(self, topic: str) -> Iterator[asyncio.Event]:
        """Have an event set whenever the topic may have something new."""
        self._listen()
        news = asyncio.Event()
        self._news.setdefault(topic, set()).add(news)
        try:
            yield news
        finally:
            self._news[topic].discard(news)
            if not self._news[topic]:
                del self._news[topic]

    def _listen(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            commit_listeners.on_committed(self._on_committed)
            commit_listeners.on_remote_heads(self._on_heads)
            commit_listeners.on_posted(self._tell)

    def _on_committed(self, stored: Sequence[Stored]) -> None:
        if self._news:
            self._tell({f"stream:{event.conversation}" for event in stored})

    def _on_heads(self, heads: Iterable[str]) -> None:
        if self._news:
            self._tell([f"stream:{key}" for key in heads])

    def _tell(self, topics: Collection[str]) -> None:
        """In the thread that committed: pass on what somebody waits for."""
        awaited = [topic for topic in topics if topic in self._news]
        if awaited and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # a closed loop has nobody who waits
                self._loop.call_soon_threadsafe(self._wake, awaited)

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for news in self._news.get(topic, ()):
                news.set()


async def wait_for_change(gone: asyncio.Future[None], news: asyncio.Event, seconds: float) -> None:
    """Wait for news, for the client to leave, or for the time to pass."""
    waiter = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait((gone, waiter), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()


async def wait_for_disconnect(receive: route.Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
