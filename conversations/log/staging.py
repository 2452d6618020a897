"""Conversations that an import is still writing: invisible until all of a file is stored, then visible at once."""

import time
import uuid

from django.db import IntegrityError, connection
from django.db.models import QuerySet

from conversations.errors import Conflict
from conversations.log.writing import writing
from conversations.models import Conversation, Event, Participant, Response, ToolCall, Turn

PREFIX = "staged:"
PATIENCE = 3600  # seconds without a new event, after which an import on PostgreSQL counts as abandoned


class Batch:
    """One file's staged conversations. `chained_as` is what `append` needs to chain them under their final keys."""

    def __init__(self) -> None:
        self.name = f"{PREFIX}{uuid.uuid4().hex}"
        self.chained_as: dict[str, str] = {}

    def stage(self, final_key: str) -> str:
        """Answer the key under which to append what will be `final_key`. Raises Conflict when that exists already."""
        if final_key in self.chained_as.values() or Conversation.objects.filter(key=final_key).exists():
            raise Conflict(
                f"conversation {final_key!r} exists already", code="conversation_exists", field="conversation_id"
            )
        staged_key = f"{self.name}:{len(self.chained_as)}"
        self.chained_as[staged_key] = final_key
        return staged_key

    def publish(self) -> None:
        """Make all visible in one transaction. Raises Conflict, and publishes none, when a key came to exist, or when
        it stood still for so long that another process discarded it."""
        try:
            with writing(), connection.cursor() as cursor:
                for staged_key, final_key in self.chained_as.items():
                    cursor.execute(
                        "UPDATE conversations_conversation SET key=%s,is_staged=%s WHERE key=%s",
                        [final_key, False, staged_key],
                    )
                    if cursor.rowcount != 1:
                        raise Conflict("the import was taken for an abandoned one: import it again", code="discarded")
        except IntegrityError:
            raise Conflict("a conversation of this file came to exist meanwhile", code="conversation_exists") from None

    def discard(self) -> None:
        """Remove what was staged."""
        discard_staged(self.name)


def discard_staged(prefix: str = PREFIX, *, chunk: int = 2000) -> None:
    """Remove staged conversations, by default of every import that never ended. In chunks: live writers go on."""
    staged = Conversation.objects.filter(is_staged=True, key__startswith=prefix)
    for conversation in staged if prefix != PREFIX else _abandoned(staged):
        remove(conversation, chunk=chunk)


def _abandoned(staged: QuerySet[Conversation]) -> list[Conversation]:
    """Leave out what another process may still be importing: one data directory has one process, PostgreSQL many."""
    found = list(staged)
    if connection.vendor == "sqlite":
        return found
    alive: dict[str, int] = {}
    for conversation in found:
        alive[_batch_of(conversation)] = max(alive.get(_batch_of(conversation), 0), conversation.last_at)
    border = time.time_ns() // 1000 - PATIENCE * 1_000_000
    return [conversation for conversation in found if alive[_batch_of(conversation)] < border]


def _batch_of(staged: Conversation) -> str:
    return ":".join(staged.key.split(":")[:2])


def remove(conversation: Conversation, *, chunk: int = 2000) -> None:
    """Remove a conversation that was never part of the record (staged, or the demo's)."""
    left = True
    while left:
        with writing():
            ids = list(Event.objects.filter(conversation=conversation).values_list("id", flat=True)[:chunk])
            Event.objects.filter(id__in=ids).delete()
            left = bool(ids)
    with writing():
        ToolCall.objects.filter(conversation=conversation).delete()
        Participant.objects.filter(conversation=conversation).delete()
        Response.objects.filter(conversation=conversation).delete()
        Turn.objects.filter(conversation=conversation).delete()
        conversation.delete()
