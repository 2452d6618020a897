"""Tell other processes, by the channel layer, which conversations changed, that the audit log has grown, and who is
viewing them. One thread with its own event loop.

Where there is a Redis, every process that commits has one (web, recorder, worker, a command), made on first use. It
never blocks or fails the committer: the queue is bounded, a failed layer is retried with pauses and logged once, and
what is lost is found by the receivers' polling.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)

GROUP = "doorbell"  # an older name, which processes of an earlier release join
KIND = "switchboard.rung"
MAX_HEADS = 500  # of one message
MAX_WAITING = 10_000  # conversations; the receivers' polling finds more
MAX_PRESENCE = 200  # words about people of one message; as many messages follow as it takes
SPACING = 0.01  # seconds between two messages: what comes meanwhile is sent together
SEND_TIMEOUT_S = 3.0
PAUSES = (0.5, 1.0, 2.0, 5.0)  # seconds between tries while the layer is dead
FLUSH_AT_EXIT_S = 1.0  # that a process waits at its end until everything is sent

_making = threading.Lock()

Word = Any  # what JSON can hold
Message = dict[str, Any]
K = TypeVar("K")
V = TypeVar("V")


class BroadcastSender(threading.Thread):
    """Sends heads, only the newest of each conversation. `me` names this process in its messages."""

    def __init__(self) -> None:
        super().__init__(name="broadcast-sender", daemon=True)
        self.me = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.trouble = ""  # why the last word did not get out
        self.dropped = 0  # heads there was no room for
        self._heads: dict[str, int] = {}
        self._presence: dict[tuple[str, ...], Word] = {}
        self._is_audited = self._is_revoked = False
        self._is_saying = False
        self._beat_every: float | None = None
        self._is_due = False  # a beat
        self._failures = 0
        self._is_open = True
        self._layer: Any = get_channel_layer()  # Any: channels is untyped
        self._condition = threading.Condition()

    def say(self, heads: Mapping[str, int], *, is_audited: bool = False, is_revoked: bool = False) -> None:
        """Queue new heads, and whether the audit log has grown or rights ended; return at once."""
        with self._condition:
            if len(self._heads) + len(heads) > MAX_WAITING:
                self.dropped += len(heads)
            else:
                self._heads.update(heads)
            self._is_audited |= is_audited
            self._is_revoked |= is_revoked
            self._condition.notify_all()

    def say_presence(self, updates: Mapping[tuple[str, ...], Word]) -> None:
        """Queue presence updates, only the newest of each key."""
        with self._condition:
            room = MAX_WAITING - len(self._presence)
            self._presence.update(list(updates.items())[:room])
            self._condition.notify_all()

    def beat(self, every: float) -> None:
        """Send a beat now and at least every so many seconds: it tells listeners that the layer works."""
        with self._condition:
            self._beat_every, self._is_due = every, True
            self._condition.notify_all()

    def finish(self, within: float = FLUSH_AT_EXIT_S) -> None:
        """Wait until everything is sent, at most `within` seconds, and not at all while the layer is down."""
        with self._condition:
            self._condition.wait_for(lambda: self.trouble or not self._is_waiting(), within)

    def run(self) -> None:
        """Send what is queued, as long as the process lives."""
        loop = _OwnLoop()
        while True:
            message = self._next()
            if not self._is_open:
                break
            error = self._try(loop, message)
            self._failures = self._failures + 1 if error else 0
            self._note(error)
            time.sleep(PAUSES[min(self._failures, len(PAUSES)) - 1] if error else SPACING)
        loop.close()

    def close(self) -> None:
        """End the thread, without waiting for it."""
        with self._condition:
            self._is_open, self._is_due = False, True
            self._condition.notify_all()

    def _is_waiting(self) -> bool:
        return bool(self._heads or self._presence or self._is_audited or self._is_revoked or self._is_saying)

    def _next(self) -> Message:
        with self._condition:
            self._is_saying = False
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._is_waiting() or self._is_due, self._beat_every)
            heads, people = _take_up_to(self._heads, MAX_HEADS), _take_up_to(self._presence, MAX_PRESENCE)
            flags = {"audited": self._is_audited, "revoked": self._is_revoked}
            self._is_audited = self._is_revoked = False
            self._is_saying, self._is_due = True, False
        message = {"type": KIND, "from": self.me, "heads": heads, **flags}
        return message | ({"presence": [[*key, word] for key, word in people]} if people else {})

    def _try(self, loop: asyncio.AbstractEventLoop, message: Message) -> str:
        """Send one message; return the error, empty if it was sent. A broken connection is dropped with its buffers."""
        try:
            loop.run_until_complete(asyncio.wait_for(self._layer.group_send(GROUP, message), SEND_TIMEOUT_S))
        except Exception as error:
            with contextlib.suppress(Exception):
                loop.run_until_complete(asyncio.wait_for(self._layer.flush(), SEND_TIMEOUT_S))
            return f"{type(error).__name__}: {error}".rstrip(": ")
        return ""

    def _note(self, error: str) -> None:
        if error and not self.trouble:
            logger.warning("other processes cannot be notified; they poll the database every second instead: %s", error)
        elif self.trouble and not error:
            logger.warning("other processes can be notified again")
        with self._condition:
            self.trouble = error
            self._condition.notify_all()


def sender() -> BroadcastSender | None:
    """Return this process's running sender; None without a channel layer."""
    with _making:  # of two threads with a first word, one makes it
        return started_sender()


@cache
def started_sender() -> BroadcastSender | None:
    """Start the sender at the first call, and return the same one from then on."""
    if get_channel_layer() is None:
        return None
    broadcaster = BroadcastSender()
    broadcaster.start()
    atexit.register(broadcaster.finish)
    return broadcaster


def _take_up_to(waiting: dict[K, V], most: int) -> list[tuple[K, V]]:
    """Remove and return the first `most` items."""
    return [(key, waiting.pop(key)) for key in list(waiting)[:most]]


class _OwnLoop(asyncio.SelectorEventLoop):
    """An event loop that resolves names in its own thread: a process that is ending has no thread pool for it."""

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> Any:  # Any: as in asyncio
        return socket.getaddrinfo(host, port, **hints)
