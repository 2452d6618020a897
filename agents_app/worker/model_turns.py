"""Track the turns of a run while models stream: which turn a piece of text belongs to. Used by the run's hooks.

The SDK's loop reports when a model is called and when it has answered; the stream arrives later, over a queue. A turn
is therefore closed when both have been seen.

An answer may contain several messages (`phase`: commentary, then final_answer). Each has its own turn number, so that
its tokens and its output are distinguished from those of the others; the answer itself has the last number.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from agents import ItemHelpers, StreamEvent
from django.conf import settings
from openai.types.responses import ResponseOutputMessage, ResponseReasoningItem
from pydantic import BaseModel

from agents_app.run_scope import RunnerId
from agents_app.worker.event_writer import RunEventWriter
from conversations.core.json_values import text_of


class TurnTooLarge(Exception):
    """A model's output exceeds the limit of an answer, or of a run."""


class TurnLimits(NamedTuple):
    """How many bytes of text, reasoning and arguments a model may send, in one answer and in a whole run."""

    turn: int
    run: int


LAG = 5.0  # seconds for the queue to catch up with the loop
ENDS = ("response.completed", "response.incomplete", "response.failed")
TEXT, REFUSAL = "response.output_text.delta", "response.refusal.delta"


@dataclass(slots=True)
class StreamedMessage:
    """One message of an answer, from the stream or from the complete answer."""

    number: int
    phase: str = ""
    pieces: list[str] = field(default_factory=list)
    refusal: str = ""
    thoughts: int = 0  # reasoning items of the answer since the message before it

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(self.pieces)

    @property
    def facts(self) -> dict[str, Any]:
        """The fields that its own events have in addition to the turn's."""
        fields: dict[str, Any] = {"turn": self.number}
        fields |= {"phase": self.phase} if self.phase else {}
        return fields | ({"thoughts": self.thoughts} if self.thoughts else {})


@dataclass(slots=True)
class ModelAnswer:
    """One answer of a model. `messages` are the streamed ones, in order."""

    number: int
    agent: str
    runner: RunnerId
    tools: list[str]
    began: float = field(default_factory=time.monotonic)
    messages: list[StreamedMessage] = field(default_factory=list)
    phases: dict[int, str] = field(default_factory=dict)  # by place in the answer, as stated when an item begins
    streamed: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0  # bytes that streamed
    places: list[int] = field(default_factory=list)  # of `messages` in the answer
    thoughts: int = 0  # reasoning items that streamed since the last message

    @property
    def parent_call(self) -> str | None:
        """Our id of the tool call that it is inside; None in the run itself."""
        return self.runner.parent_call

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of each of its events."""
        fields: dict[str, Any] = {"agent": self.agent, "turn": self.number}
        return fields | {"parent_call": self.parent_call} if self.parent_call else fields


class ModelTurns:
    """The turns of one attempt. `last` is the number of turns in earlier attempts."""

    def __init__(self, event_writer: RunEventWriter, last: int = 0) -> None:
        self.last = last
        self._event_writer = event_writer
        self._most = TurnLimits(settings.CONFIG.model_turn_bytes, settings.CONFIG.model_run_bytes)
        self._size = 0  # bytes of all turns
        self._streaming: dict[RunnerId, deque[ModelAnswer]] = {}
        self._open_turns: dict[RunnerId, ModelAnswer] = {}

    def begin(self, runner: RunnerId, agent: str, tools: list[str]) -> None:
        """Start a turn: a model is called."""
        self.last += 1
        turn = ModelAnswer(self.last, agent, runner, tools)
        self._open_turns[runner] = turn
        self._streaming.setdefault(runner, deque()).append(turn)

    async def end(self, runner: RunnerId) -> ModelAnswer:
        """End a turn: the model has answered. Wait for the rest of its stream, and return the turn."""
        turn = self._open_turns.pop(runner)
        try:
            async with asyncio.timeout(LAG):
                await turn.streamed.wait()
        except TimeoutError:  # nobody streams for this runner; the output has the whole text
            if not turn.streamed.is_set():
                self._streaming[runner].remove(turn)
        return turn

    def on_event(self, runner: RunnerId, event: StreamEvent) -> None:
        """Process a stream event of the SDK: pieces of text become tokens. Raises TurnTooLarge."""
        if event.type != "raw_response_event" or not (waiting := self._streaming.get(runner)):
            return
        turn, data = waiting[0], event.data
        if data.type == TEXT:  # nearly all of them are: as little as possible
            self._take_text(turn, data)
            return
        if isinstance(piece := getattr(data, "delta", None), str):
            self._grow(turn, _size(piece))
        if data.type == REFUSAL:
            self._message(turn, _place(data))
        elif data.type == "response.output_item.added":
            item = getattr(data, "item", None)
            turn.phases[_place(data)] = phase_of(item)
            turn.thoughts += isinstance(item, ResponseReasoningItem)
        elif data.type in ENDS:
            waiting.popleft()
            turn.streamed.set()

    def _take_text(self, turn: ModelAnswer, data: Any) -> None:
        piece: str = data.delta or ""
        self._grow(turn, _size(piece))
        message = self._message(turn, _place(data))
        if piece:
            if not self._event_writer.add_piece(message.number, piece):
                self._event_writer.token(piece, turn.facts | message.facts | {"index": len(message.pieces)})
            message.pieces.append(piece)

    def check(self, turn: ModelAnswer, items: Sequence[Any]) -> None:
        """Count an answer that was not streamed. Raises TurnTooLarge."""
        if not turn.size:
            self._grow(turn, sum(_size(item.model_dump_json()) for item in items if isinstance(item, BaseModel)))

    def _grow(self, turn: ModelAnswer, size: int) -> None:
        turn.size, self._size = turn.size + size, self._size + size
        if turn.size > self._most.turn:
            raise TurnTooLarge(_bounded_text("an answer", self._most.turn, "TURN"))
        if self._size > self._most.run:
            raise TurnTooLarge(_bounded_text("all answers of a run", self._most.run, "RUN"))

    def spoken(self, turn: ModelAnswer, items: Sequence[Any]) -> list[StreamedMessage]:
        """Return the messages of an answer in order, each with the number, and after as much reasoning, as it was
        streamed.

        Streamed messages that the answer does not contain are returned as they were streamed.
        """
        messages: list[StreamedMessage] = []
        for index, (item, thoughts) in enumerate(_said_in(items)):
            is_streamed = index < len(turn.messages)
            message = turn.messages[index] if is_streamed else self._new(turn, messages, thoughts)
            text, phase = ItemHelpers.extract_text(item) or "", phase_of(item) or message.phase
            messages.append(replace(message, phase=phase, pieces=[text], refusal=refusal_of(item)))
        messages += turn.messages[len(messages) :]
        turn.number = messages[-1].number if messages else turn.number
        return messages

    @property
    def current(self) -> int:
        """The number of the last turn."""
        return self.last

    def broken(self) -> list[dict[str, Any]]:
        """Return outputs for turns that ended in the middle of a text."""
        return [
            {"event": "output", **turn.facts, **message.facts, "text": message.text, "final": False}
            | ({"is_partial": True} if message is turn.messages[-1] else {})
            for turn in self._open_turns.values()
            for message in turn.messages
            if message.pieces
        ]

    def _message(self, turn: ModelAnswer, index: int) -> StreamedMessage:
        """Return the message that is streamed at a position of the answer; most answers have only one."""
        if turn.places and turn.places[-1] == index:
            return turn.messages[-1]
        if index not in turn.places:
            message = self._new(turn, turn.messages, turn.thoughts)
            turn.thoughts = 0
            message.phase = turn.phases.get(index, "")
            turn.messages.append(message)
            turn.places.append(index)
        return turn.messages[turn.places.index(index)]

    def _new(self, turn: ModelAnswer, before: Sequence[StreamedMessage], thoughts: int) -> StreamedMessage:
        """Create a further message: the first has the turn's own number."""
        if not before:
            return StreamedMessage(turn.number, thoughts=thoughts)
        self.last += 1
        return StreamedMessage(self.last, thoughts=thoughts)


def _place(data: Any) -> int:
    """Return the position of an item in the answer; for servers that do not report it there is only one."""
    index = getattr(data, "output_index", 0)
    return index if isinstance(index, int) else 0


def _bounded_text(what: str, most: int, name: str) -> str:
    setting = f"SWITCHBOARD_MODEL_{name}_BYTES"
    return f"the model sent more than {most:,} bytes, the most {what} may have ({setting})"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _said_in(items: Sequence[Any]) -> list[tuple[ResponseOutputMessage, int]]:
    """Return the messages of an answer that contain a text or a refusal, each with how many reasoning items there are
    since the one before."""
    messages: list[tuple[ResponseOutputMessage, int]] = []
    thoughts = 0
    for item in items:
        thoughts += isinstance(item, ResponseReasoningItem)
        if isinstance(item, ResponseOutputMessage) and (ItemHelpers.extract_text(item) or refusal_of(item)):
            messages.append((item, thoughts))
            thoughts = 0
    return messages


def refusal_of(item: ResponseOutputMessage) -> str:
    """Return the refusal in a message."""
    return "".join(part.refusal for part in item.content if part.type == "refusal")


def phase_of(item: Any) -> str:
    """Return the phase of a message: commentary, final_answer, or nothing."""
    return text_of(getattr(item, "phase", None)) or ""
