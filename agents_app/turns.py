"""The turns of a run while models speak: which turn a piece of text belongs to. Used by the run's hooks.

A lane is one runner: the run itself, or a run inside one of its tool calls. The SDK's loop tells when a model is asked
and when it has answered; what it streams comes over a queue, later. So a turn is closed when both have been seen.
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from agents import StreamEvent

from agents_app.pen import Pen

LAG = 5.0  # seconds for the queue to catch up with the loop
ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(slots=True)
class Turn:
    """One answer of a model."""

    number: int
    agent: str
    parent_call: str | None
    tools: list[str]
    began: float = field(default_factory=time.monotonic)
    text: list[str] = field(default_factory=list)
    streamed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def facts(self) -> dict[str, Any]:
        """What each of its events tells."""
        told: dict[str, Any] = {"agent": self.agent, "turn": self.number}
        return told | {"parent_call": self.parent_call} if self.parent_call else told


class Turns:
    """The turns of one attempt. `last` is how many earlier attempts had."""

    def __init__(self, pen: Pen, last: int = 0) -> None:
        self.last = last
        self._pen = pen
        self._streaming: dict[str | None, deque[Turn]] = {}
        self._asked: dict[str | None, Turn] = {}

    def begin(self, parent: str | None, agent: str, tools: list[str]) -> None:
        """A model is asked."""
        self.last += 1
        turn = Turn(self.last, agent, parent, tools)
        self._asked[parent] = turn
        self._streaming.setdefault(parent, deque()).append(turn)

    async def end(self, parent: str | None) -> Turn:
        """The model has answered: wait for the rest of its stream, and answer the turn."""
        turn = self._asked.pop(parent)
        try:
            async with asyncio.timeout(LAG):
                await turn.streamed.wait()
        except TimeoutError:  # nobody streams in this lane; the output has the whole text
            if not turn.streamed.is_set():
                self._streaming[parent].remove(turn)
        return turn

    def take(self, parent: str | None, event: StreamEvent) -> None:
        """Take what the SDK streams: pieces of text become tokens."""
        if event.type != "raw_response_event" or not (waiting := self._streaming.get(parent)):
            return
        turn, data = waiting[0], event.data
        if data.type == "response.output_text.delta":
            if data.delta:
                self._pen.token(data.delta, turn.facts | {"index": len(turn.text)})
                turn.text.append(data.delta)
        elif data.type in ENDS:
            waiting.popleft()
            turn.streamed.set()

    @property
    def current(self) -> int:
        """The number of the last turn."""
        return self.last

    def broken(self) -> list[dict[str, Any]]:
        """Answer outputs for turns that ended in the middle of a text."""
        return [
            {"event": "output", **turn.facts, "text": "".join(turn.text), "final": False, "is_partial": True}
            for turn in self._asked.values()
            if turn.text
        ]
