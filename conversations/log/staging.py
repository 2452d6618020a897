"""Conversations that an import is still writing: invisible until all of a file is stored, then visible at once."""

import uuid

from django.db import IntegrityError, connection

from conversations.errors import Conflict
from conversations.log.writing import writing
from conversations.models import Conversation, Event, Participant, ToolCall

PREFIX = "staged:"


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
        """Make all visible in one transaction. Raises Conflict, and publishes none, when a key came to exist."""
        try:
            with writing(), connection.cursor() as cursor:
                for staged_key, final_key in self.chained_as.items():
                    cursor.execute(
                        "UPDATE conversations_conversation SET key=%s,is_staged=%s WHERE key=%s",
                        [final_key, False, staged_key],
                    )
        except IntegrityError:
            raise Conflict("a conversation of this file came to exist meanwhile", code="conversation_exists") from None

    def discard(self) -> None:
        """Remove what was staged."""
        discard_staged(self.name)


def discard_staged(prefix: str = PREFIX, *, chunk: int = 2000) -> None:
    """Remove staged conversations, by default of every import that never ended. In chunks: live writers go on."""
    for conversation in Conversation.objects.filter(is_staged=True, key__startswith=prefix):
        remove(conversation, chunk=chunk)


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
        conversation.delete()
