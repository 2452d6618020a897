"""The writer's unit of work: the events of one caller, or the pieces of an answer that are not stored yet."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from conversations.events.log.records import NewEvent, Stored
from conversations.events.payload import ParsedPayload

FULL = 1024  # characters of one stored part

Done = asyncio.Future[list[Stored]] | Future[list[Stored]]


class TokenSource(NamedTuple):
    """The attempt of a run that says something, and the principal under which it does."""

    conversation: str
    run: str
    attempt: int
    principal: str


class OpenTokens:
    """Pieces of one turn, made by a run's event writer. The run's thread only adds text until the writer's thread takes
    them all and makes one event of them: only the first piece of a stored part passes the queue."""

    __slots__ = ("_fields", "_guard", "_is_open", "_pieces", "index", "keeps_lengths", "size", "source", "turn")

    def __init__(
        self, source: TokenSource, fields: Mapping[str, Any], first: str, *, keeps_lengths: bool = False
    ) -> None:
        """Start with a piece. `fields` of its event: its `agent`, its `turn`, its `index` and what else its turn has.
        `keeps_lengths`: where one piece ends and the next begins is stored."""
        self.source, self.turn, self.index = source, fields["turn"], fields["index"]
        self.keeps_lengths = keeps_lengths
        self.size = len(first)  # characters
        self._fields = fields
        self._pieces = [first]
        self._is_open = True
        self._guard = threading.Lock()

    def add(self, piece: str) -> bool:
        """Add a piece; return False if they are full or taken."""
        with self._guard:
            if not self._is_open or self.size >= FULL:
                return False
            self._pieces.append(piece)
            self.size += len(piece)
            return True

    def take(self) -> list[str]:
        """Return the pieces; none can be added anymore."""
        with self._guard:
            self._is_open = False
        return self._pieces

    def event_of(self, pieces: Sequence[str], last_index: int) -> NewEvent:
        """Return the event of these pieces, of which the last one has this index. What is no Unicode text becomes
        `?`."""
        text = "".join(pieces)
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        conversation, run, attempt, principal = self.source
        body = {"event": "token", "run_id": run, "conversation_id": conversation, **self._fields, "text": text}
        if len(pieces) > 1:
            body["last_index"] = last_index
            if self.keeps_lengths:
                body["lengths"] = [len(piece) for piece in pieces]
        payload = ParsedPayload(
            event="token", text=text, index=self.index, turn=self.turn, agent=self._fields["agent"], run_id=run,
            conversation_id=conversation,
        )  # fmt: skip
        encoded = msgspec.json.encode(body).decode()
        return NewEvent(  # by place, as in `from_bus`
            conversation, "token", encoded, principal, payload, None, run, self.turn, "", None, attempt
        )


class Job(NamedTuple):
    """The events of one caller, stored together or not at all, and the futures that wait for them."""

    events: Sequence[NewEvent]
    on_done: Done | None
    size: int
    in_same_transaction: Callable[[], None] | None = None  # changes rows in the same transaction, after the events
    joined: Sequence[Done] = ()  # who waits for tokens that became part of this one's event: answered with it
    open_tokens: OpenTokens | None = None  # in place of an event, which the writer's thread makes of all of them

    @property
    def key(self) -> str | None:
        """The conversation whose order it must keep; None for a job with several conversations or none."""
        keys = {event.conversation for event in self.events}
        return keys.pop() if len(keys) == 1 else None
