"""Stage the conversations of an import: invisible until the whole file is stored, then visible all at once."""

import logging
import time
import uuid
from collections.abc import Iterable

from django.db import IntegrityError, connection
from django.db.models import QuerySet

from conversations.core.errors import Conflict
from conversations.core.write_transaction import write_transaction
from conversations.models import (
    Conversation,
    Event,
    LegalHold,
    ModelUsage,
    Participant,
    Post,
    Redaction,
    Response,
    ToolCall,
    Turn,
)

logger = logging.getLogger(__name__)

EXISTS = "conversation_exists"  # code of a Conflict: another id is needed, or an update
PREFIX = "staged:"
CHUNK = 2000  # events deleted at once
PATIENCE = 3600  # seconds without a new event, after which an import on PostgreSQL counts as abandoned


class StagedBatch:
    """The staged conversations of one file. `chained_as` is passed to `append` to chain them under their final keys."""

    def __init__(self) -> None:
        self.name = f"{PREFIX}{uuid.uuid4().hex}"
        self.chained_as: dict[str, str] = {}
        self._final_keys: set[str] = set()

    def stage(self, final_key: str) -> str:
        """Return the staging key for `final_key`. Raises Conflict if that conversation already exists."""
        if final_key in self._final_keys or Conversation.objects.filter(key=final_key).exists():
            raise Conflict(f"conversation {final_key!r} already exists", code=EXISTS)
        staged_key = f"{self.name}:{len(self.chained_as)}"
        self.chained_as[staged_key] = final_key
        self._final_keys.add(final_key)
        return staged_key

    def publish(self) -> None:
        """Make all conversations visible in one transaction. Raises Conflict, and publishes none, if one of the keys
        has been created, or if another process discarded the import as abandoned."""
        try:
            with write_transaction(), connection.cursor() as cursor:
                for staged_key, final_key in self.chained_as.items():
                    cursor.execute(
                        "UPDATE conversations_conversation SET key=%s,is_staged=%s WHERE key=%s",
                        [final_key, False, staged_key],
                    )
                    if cursor.rowcount != 1:
                        raise Conflict("the import was cleaned up as abandoned: import again", code="discarded")
        except IntegrityError:
            raise Conflict("a conversation in this file has been created in the meantime", code=EXISTS) from None

    def discard(self) -> None:
        """Delete what was staged."""
        discard_staged(self.name)


def discard_staged(prefix: str = PREFIX) -> None:
    """Delete staged conversations, by default of every abandoned import. Works in chunks, so that live writers
    continue."""
    staged = Conversation.objects.filter(is_staged=True, key__startswith=prefix)
    _discard(staged if prefix != PREFIX else _abandoned(staged))


def discard_all_staged() -> None:
    """Delete what was staged in a record that nobody imports into: one that is being restored."""
    _discard(Conversation.objects.filter(is_staged=True, key__startswith=PREFIX))


def _discard(staged: Iterable[Conversation]) -> None:
    for conversation in staged:
        if is_needed(conversation):
            logger.error("%s stays: a fork, a legal hold or a redaction needs it", conversation.key)
        else:
            remove(conversation)


def is_needed(conversation: Conversation) -> bool:
    """Return whether a fork, a legal hold (also a released one) or a redaction refers to it: it cannot be deleted."""
    return any(rows.filter(conversation=conversation).exists() for rows in (LegalHold.objects, Redaction.objects)) or (
        conversation.forks.exists()
    )


def _abandoned(staged: QuerySet[Conversation]) -> list[Conversation]:
    """Exclude what another process may still be importing: a data directory has one process, PostgreSQL many."""
    conversations = list(staged)
    if connection.vendor == "sqlite":
        return conversations
    alive: dict[str, int] = {}
    for conversation in conversations:
        alive[_batch_of(conversation)] = max(alive.get(_batch_of(conversation), 0), conversation.last_at)
    border = time.time_ns() // 1000 - PATIENCE * 1_000_000
    return [conversation for conversation in conversations if alive[_batch_of(conversation)] < border]


def _batch_of(staged: Conversation) -> str:
    return ":".join(staged.key.split(":")[:2])


def remove(conversation: Conversation) -> None:
    """Delete a conversation that was never part of the record (a staged or demo conversation)."""
    with write_transaction():
        Post.objects.filter(conversation=conversation).delete()  # first: their texts are in the events
    left = True
    while left:
        with write_transaction():
            ids = list(Event.objects.filter(conversation=conversation).values_list("id", flat=True)[:CHUNK])
            Event.objects.filter(id__in=ids).delete()
            left = bool(ids)
    with write_transaction():
        for model in (ToolCall, Participant, Response, Turn, ModelUsage):
            model._default_manager.filter(conversation=conversation).delete()
        conversation.delete()
