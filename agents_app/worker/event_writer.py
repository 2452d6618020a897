"""Write the events of one attempt of a run: behind the fence, with secrets masked, through the log's writer."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from agents_app.recorded_values import mask, truncate_fields
from conversations.core.errors import Busy, Fenced, NotAllowed, TooLarge
from conversations.events import log, registry
from conversations.events.log.records import NewEvent
from conversations.events.log.write_job import OpenTokens, TokenSource
from conversations.runs.claims import Body, Claim

logger = logging.getLogger(__name__)

BUSY_FOR = 0.1  # seconds before the next try while the write queue is full


class RunEventWriter:
    """Writes for one claim. Once the fence is lost, every further write raises `Fenced`."""

    def __init__(self, claim: Claim, writer: log.WriterThreads) -> None:
        self.claim = claim
        self.is_lost = False
        self.keeps_lengths = False  # of the pieces of an answer: a client is told each piece
        self._writer = writer
        self._open_tokens: dict[int, OpenTokens] = {}  # by turn: nothing else of the run came after them
        self._token_source = TokenSource(claim.conversation, claim.run, claim.attempt, str(claim.principal))
        self._head = {"run_id": claim.run, "conversation_id": claim.conversation}

    def add_piece(self, turn: int, text: str) -> bool:
        """Add a piece to a turn's last token that is not stored yet; return False if there is none."""
        tokens = self._open_tokens.get(turn)
        return tokens is not None and tokens.add(text)

    def token(self, text: str, fields: Mapping[str, Any]) -> None:
        """Write a piece of an answer without waiting; a full queue drops it, because the turn's output contains it
        too."""
        tokens = OpenTokens(self._token_source, fields, text, keeps_lengths=self.keeps_lengths)
        try:
            self._writer.submit((), open_tokens=tokens)
            self._open_tokens[fields["turn"]] = tokens
        except Busy:
            self._open_tokens.pop(fields["turn"], None)
            logger.warning("tokens are dropped: the write queue is full", extra={"run": self.claim.run})

    async def store(self, *payloads: Body, in_same_transaction: Callable[[], None] | None = None) -> None:
        """Store events together and wait for the commit; `in_same_transaction` changes further rows. Raises Fenced, or
        the reason why they are invalid."""
        if self.is_lost:
            raise Fenced(f"run {self.claim.run} no longer belongs to this worker")
        events = [self.event(payload) for payload in payloads]
        self._open_tokens.clear()
        while True:
            try:
                await self._writer.store(events, in_same_transaction=in_same_transaction)
                return
            except Busy:
                await asyncio.sleep(BUSY_FOR)
            except Fenced:
                self.is_lost = True
                raise

    def emit(self, payload: Body) -> None:
        """Write an event of a team's own type, from any thread, without waiting. Raises NotAllowed for a type that may
        change state, which tools must not write."""
        kind = next((text for name in ("event", "type") if isinstance(text := payload.get(name), str) and text), "")
        if registry.is_reserved(kind):
            allowed = "event types of its own team, such as town_hall.stage"
            raise NotAllowed(f"a tool may only write {allowed}; got {mask(kind)}")
        self._open_tokens.clear()
        self._writer.submit([self.event(payload | self._head)])

    def event(self, payload: Body) -> NewEvent:
        """Create an event behind the fence; values that are too large are truncated."""
        try:
            return self.claim.event(payload)
        except TooLarge:
            return self.claim.event(truncate_fields(payload))

    def fit(self, payload: Body) -> Body:
        """Return the payload of an event; if it is too large, with its large values truncated."""
        try:
            self.claim.event(payload)
        except TooLarge:
            return truncate_fields(payload)
        return payload
