"""A client of the socket by the rule of §3.5, and the line between it and the hub that a test can spoil."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from conversations.realtime.catch_up_subscription import CatchUpSubscription
from conversations.realtime.feed import Mode
from conversations.realtime.hub import Hub
from conversations.realtime.socket_writer import SocketWriter


class Client:
    """Applies seq = last+1, drops what it has, and subscribes again after `last` when something is missing."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Any]] = []
        self.last = 0
        self.epoch: str | None = None
        self.must_subscribe = False

    def take(self, text: str) -> None:
        """Take one frame."""
        frame = json.loads(text)
        if frame["t"] == "reset":
            self.seen, self.last, self.epoch = [], 0, frame["epoch"]
        elif frame["t"] == "events":
            for event in frame["events"]:
                self._take_event(event)
        elif frame["t"] == "caught_up":
            self.epoch = frame["epoch"]
        if frame["t"] in ("head", "caught_up") and frame["seq"] > self.last:
            self.must_subscribe = True

    def _take_event(self, event: dict[str, Any]) -> None:
        if event["seq"] == self.last + 1:
            self.last = event["seq"]
            self.seen.append((event["seq"], event.get("body")))
        elif event["seq"] > self.last:
            self.must_subscribe = True


class Line:
    """Carries frames from a subscription to a client: may lose, double, swap or hold them back.

    With `takes_ready` it takes ready frames where it is level, as a socket with room does.
    """

    def __init__(self, hub: Hub, client: Client, key: str, mode: Mode = "data", *, takes_ready: bool = False) -> None:
        self.hub, self.client, self.key, self.mode = hub, client, key, mode
        self.subscription: CatchUpSubscription | None = None
        self.sent: list[str] = []  # what the client has not taken yet
        self.room = asyncio.Event()
        self.room.set()
        self.failure: BaseException | None = None
        self._write = self._take_ready if takes_ready else None

    def _take_ready(self, frame: bytes) -> bool:
        self.sent.append(frame[frame.index(b"{") :].decode())
        return True

    async def _send(self, message: dict[str, object]) -> None:
        await self.room.wait()
        self.sent.append(str(message["text"]))

    def connect(self) -> None:
        """Subscribe after what the client has."""
        self.cut()
        self.client.must_subscribe = False
        self.room.set()
        wire = SocketWriter(self._send, self._write, self.hub.send_gate)
        self.subscription = CatchUpSubscription(
            self.hub, wire, self.key, self.mode, last=self.client.last, failed=self._failed
        )

    def cut(self) -> None:
        """Lose the connection and what was on its way."""
        if self.subscription is not None:
            self.subscription.close()
        self.subscription = None
        self.sent.clear()

    def deliver(self) -> None:
        """Let the client take what was sent."""
        while self.sent:
            self.client.take(self.sent.pop(0))

    def _failed(self, error: BaseException) -> None:
        self.failure = error
