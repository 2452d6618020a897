"""Deliver messages sent for the next step of an active run: into its memory, and to its model."""

from collections.abc import Callable
from typing import Any

from agents_app.memory.interjections import item_of
from agents_app.memory.session import DjangoSession
from agents_app.worker.claimed_run import WorkerServices
from agents_app.worker.event_writer import RunEventWriter
from conversations.core.errors import Fenced
from conversations.core.failpoints import failpoint
from conversations.runs import deliver_messages


class MessageDelivery:
    """The deliveries of one attempt. `next_step` returns the number of the answer for which its model is called
    next."""

    def __init__(self, writer: RunEventWriter, services: WorkerServices, next_step: Callable[[], int]) -> None:
        self._writer, self._services, self._next_step = writer, services, next_step
        self.memory: DjangoSession | None = None

    async def take(self, agent: str) -> list[Any]:
        """Accept the waiting messages for the agent that is called next; return them in the model's form. Raises
        Fenced."""
        claim = self._writer.claim
        if not await self._services.read(deliver_messages.has_waiting, claim):
            return []
        names = {claim.agent, agent}
        try:
            messages = await self._services.do(deliver_messages.deliver, claim, names, self._next_step())
        except Fenced:
            self._writer.is_lost = True
            raise
        items = [item_of(message.body) for message in messages]
        for message, item in zip(messages, items, strict=True):
            if self.memory is not None:
                self.memory.take_in(message.seq, item)
        if items:
            failpoint("after-delivery")
        return items
