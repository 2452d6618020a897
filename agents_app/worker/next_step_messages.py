"""Deliver messages sent for the next step of an active run: into its memory, and to its model."""

from typing import Any

from agents_app.memory.interjections import item_of
from agents_app.memory.session import DjangoSession
from agents_app.worker.claimed_run import WorkerServices
from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.model_turns import ModelTurns
from conversations.core.errors import Fenced
from conversations.core.failpoints import failpoint
from conversations.runs import deliver_messages


class MessageDelivery:
    """The deliveries of one attempt, into this memory."""

    def __init__(
        self, writer: RunEventWriter, services: WorkerServices, memory: DjangoSession, turns: ModelTurns
    ) -> None:
        self._writer, self._services, self._memory, self._turns = writer, services, memory, turns

    async def take(self, agent: str) -> list[Any]:
        """Accept the waiting messages for the agent that is called next; return them in the model's form. Raises
        Fenced."""
        claim = self._writer.claim
        if not await self._services.read(deliver_messages.has_waiting, claim):
            return []
        names = {claim.agent, agent}
        try:
            messages = await self._services.do(deliver_messages.deliver, claim, names, self._turns.current + 1)
        except Fenced:
            self._writer.is_lost = True
            raise
        items = [item_of(message.body) for message in messages]
        for message, item in zip(messages, items, strict=True):
            self._memory.take_in(message.seq, item)
        if items:
            failpoint("after-delivery")
        return items
