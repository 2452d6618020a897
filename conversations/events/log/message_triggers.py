"""Decide which messages start a run (§3.4): to an agent served here, or to a conversation that an agent handles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conversations.core import principals
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events.log.records import NewEvent, from_internal
from conversations.events.projections import ConversationHead
from conversations.models import Agent, Conversation

MAX_HOPS = 20


class MessageTriggers:
    """Decides which messages of one batch start a run, by the agents of this deployment."""

    def __init__(self, entries: frozenset[str], agents: frozenset[str]) -> None:
        self._entries, self._agents = entries, agents

    @classmethod
    def of_batch(cls, batch: Sequence[NewEvent]) -> MessageTriggers | None:
        """Load the agents if a message of the batch may start a run; return None if none can."""
        for event in batch:
            if event.kind == "message" and _may_start(event):
                return cls.of_now()
        return None

    @classmethod
    def of_now(cls) -> MessageTriggers:
        """Load the agents."""
        rows = list(Agent.objects.values_list("name", "is_entry"))
        return cls(frozenset(name for name, is_entry in rows if is_entry), frozenset(name for name, _ in rows))

    def of(self, event: NewEvent, head: ConversationHead) -> Iterator[NewEvent]:
        """Return the events of the run that a message starts; `head.head_seq` is the message's seq."""
        message = event.payload
        name = self.answerer(message.speaker, message.recipient or "", event.principal, head)
        if name is None or not _is_candidate(event):
            return
        run, input_seq = new_id(), head.head_seq
        fields: dict[str, object] = {"id": new_id(), "run_id": run, "agent": name}
        queued: dict[str, object] = {"event": "run.queued", **fields, "run_kind": "agent", "input_seq": input_seq}
        hop = event.payload.metadata.hop if event.payload.metadata else None
        if event.payload.metadata and event.payload.metadata.is_for_next_step and not hop:
            queued["at_next_step"] = True  # not what a run sent: its hops are counted where they are answered
        yield from_internal(head.key, queued, SYSTEM)
        if hop is not None and hop >= MAX_HOPS:
            why = f"{hop} hops: agents keep answering each other"
            fields["id"] = new_id()
            yield from_internal(
                head.key, {"event": "run.failed", **fields, "reason": "hop_limit", "error": why}, SYSTEM
            )

    def answerer(
        self, speaker: str, recipient: str, principal: str, head: ConversationHead | Conversation
    ) -> str | None:
        """Return the name of the agent that answers a message from `speaker` to `recipient`; None if no agent does."""
        kind, _, name = recipient.partition(":")
        if kind == "agent":
            return name if name in self._entries and speaker != f"agent:{name}" else None
        handler = head.handler.removeprefix("agent:")
        is_to_handler = kind == "chat" and name == head.key and not speaker.startswith("agent:")
        if is_to_handler and head.owner == principal:  # who holds it answers here, and asks nobody
            return None
        return handler if is_to_handler and handler in self._agents else None


def _is_candidate(event: NewEvent) -> bool:
    return event.kind == "message" and not event.starts_no_run and not principals.is_imported(event.principal)


def _may_start(event: NewEvent) -> bool:
    """Return whether a message may start a run, without a query."""
    recipient = event.payload.recipient
    if recipient is None or not recipient.startswith(("agent:", "chat:")):
        return False
    if not _is_candidate(event) or event.conversation is None:
        return False
    return recipient.startswith("agent:") or not event.payload.speaker.startswith("agent:")
