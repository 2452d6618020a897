"""Let clients wait for new messages on a topic: they are woken by commits and hold no thread. Used by the topic
endpoint."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from conversations.asgi import route
from conversations.events import commit_listeners
from conversations.events.log.records import Stored


class LongPoll:
    """The waiting clients of one process. It starts listening with the first one, in that client's loop."""

    def __init__(self) -> None:
        self._news: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def on(self, topic: str) -> Iterator[asyncio.Event]:
        """Return a context in which an event is set whenever the topic may have new messages."""
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
            commit_listeners.on_posted(self._wake_waiting)

    def _on_committed(self, stored: Sequence[Stored]) -> None:
        if self._news:
            self._wake_waiting({f"stream:{event.conversation}" for event in stored})

    def _on_heads(self, heads: Iterable[str]) -> None:
        if self._news:
            self._wake_waiting([f"stream:{key}" for key in heads])

    def _wake_waiting(self, topics: Collection[str]) -> None:
        """Wake the clients that wait for these topics, in the thread that committed."""
        awaited = [topic for topic in topics if topic in self._news]
        if awaited and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # a closed loop has nobody who waits
                self._loop.call_soon_threadsafe(self._wake, awaited)

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for news in self._news.get(topic, ()):
                news.set()


async def wait_for_change(gone: asyncio.Future[None], news: asyncio.Event, seconds: float) -> None:
    """Wait for new messages, for the client to disconnect, or for the timeout."""
    waiter = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait((gone, waiter), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()


async def wait_for_disconnect(receive: route.Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
