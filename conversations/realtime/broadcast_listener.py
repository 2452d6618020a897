"""Receive notifications from other processes through the channel layer: one channel of this process in one group.

Runs as a task of the server runtime.

The sender of this process sends a heartbeat, which also arrives here: silence means that the channel layer is down. The
listener then joins again, with pauses; in the meantime the hub and the socket registry poll the database.
"""

import asyncio
import contextlib
import logging
import time
from typing import Any

from channels.layers import get_channel_layer

from conversations.core.background_loop import cancel_all
from conversations.core.broadcast_sender import GROUP, KIND, PAUSES, BroadcastSender, sender
from conversations.core.status import OK
from conversations.events import commit_listeners

logger = logging.getLogger(__name__)

BEAT_EVERY = 1.0  # seconds
SILENCE = 4.0  # seconds without a word, not even our own


class BroadcastListener:
    """Listens for this process. Call `start` in the loop of its hub; without a channel layer it does nothing."""

    def __init__(self) -> None:
        self.heard_at: float | None = None  # monotonic, of the last word
        self._began_at = 0.0
        self._trouble = ""
        self._sender: BroadcastSender | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start listening."""
        self._sender = sender()
        if self._sender is not None:
            self._began_at = time.monotonic()
            self._sender.beat(BEAT_EVERY)
            self._task = asyncio.create_task(self._listen(), name="broadcast listener")

    async def stop(self) -> None:
        """Stop listening."""
        if self._task is not None:
            await cancel_all([self._task])
            await _forget()

    @property
    def age_s(self) -> float | None:
        """Seconds since the last message; None without a channel layer."""
        if self._sender is None:
            return None
        return round(time.monotonic() - (self.heard_at or self._began_at), 3)

    @property
    def state(self) -> str | None:
        """`ok`, or why no messages arrive; None without a channel layer."""
        age = self.age_s
        if age is None or self._sender is None:
            return None
        if self.heard_at is not None and age < SILENCE:
            return OK
        if trouble := self._sender.trouble or self._trouble:
            return trouble
        return "waiting for the first notification" if age < SILENCE else f"nothing heard for {age:.0f} s"

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                await self._join_and_hear()
            except Exception as error:
                joined = self.heard_at is not None and time.monotonic() - self.heard_at < 2 * SILENCE
                failures = 0 if joined else failures + 1
                if not self._trouble:
                    logger.warning(
                        "no notifications from other processes; polling the database instead: %s", _error_text(error)
                    )
                self._trouble = _error_text(error)
            await _forget()
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])

    async def _join_and_hear(self) -> None:
        layer = get_channel_layer()
        async with asyncio.timeout(SILENCE):
            channel = await layer.new_channel()
            await layer.group_add(GROUP, channel)
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    message = await layer.receive(channel)
            except TimeoutError:
                raise TimeoutError(f"no message for {SILENCE:.0f} s") from None
            except ValueError:  # no message of ours; whoever is on Redis can send one
                continue
            self._hear(message)

    def _hear(self, message: Any) -> None:
        if not isinstance(message, dict) or message.get("type") != KIND:
            return
        self.heard_at = time.monotonic()
        if self._trouble:
            self._trouble = ""
            logger.warning("notifications from other processes arrive again")
        if self._sender is not None and message.get("from") != self._sender.me:
            heads, is_audited = _heads(message.get("heads")), message.get("audited") is True
            commit_listeners.notify_remote(heads, is_audited=is_audited, is_revoked=message.get("revoked") is True)
            if isinstance(updates := message.get("presence"), list | tuple):
                commit_listeners.notify_presence(str(message.get("from"))[:100], updates)


def _heads(raw_heads: Any) -> dict[str, int]:
    """Read the heads of a message, leaving out invalid ones."""
    pairs = (
        [p for p in raw_heads if isinstance(p, list | tuple) and len(p) == 2]
        if isinstance(raw_heads, list | tuple)
        else []
    )
    return {key: seq for key, seq in pairs if isinstance(key, str) and type(seq) is int and 0 < seq < 1 << 53}


async def _forget() -> None:
    """Close the connections and discard what they hold."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(SILENCE):
            await get_channel_layer().flush()


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
