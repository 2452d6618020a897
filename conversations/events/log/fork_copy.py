"""Copy another conversation's events 1…N to a fork, under a new chain (§5). Called by `conversation.fork`.

    copied = ForkCopy(StagedBatch(), "new key", parent, upto=120)
    copied.take()                       # page by page, each in a separate transaction; not visible yet
    with write_transaction():
        copied.publish()                # visible from the commit on, with the events appended after it

Kind, time, principal, ids and body are not changed, so the history is the same; salts and hashes are the fork's own.
An interrupted copy is deleted together with abandoned imports (`import_staging`).
"""

import os
import time
from dataclasses import replace
from typing import Any

from django.db import connection

from conversations.core import principals
from conversations.core.errors import Conflict
from conversations.core.write_transaction import write_transaction
from conversations.events import payload, projections, registry
from conversations.events.log import bounded_reads, hash_chain, sql
from conversations.events.log.import_staging import StagedBatch
from conversations.events.payload import ParsedPayload
from conversations.events.projections import EventFacts, RowChanges
from conversations.events.types.redaction import FIELD_MARK
from conversations.models import Conversation

PAGE = 500  # events a transaction, fewer where bodies are large
HANDLING = registry.names_with("names_handler")
_COLUMNS = "seq,kind,at,principal,run,turn,event_id,erased_by,body"
_EVENTS = "FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s"
_ALIVE = "UPDATE conversations_conversation SET last_at=%s WHERE id=%s"


class ForkCopy:
    """A parent's events while they are copied into a fork. Use it in one thread; end it with `publish` or `discard`."""

    def __init__(self, batch: StagedBatch, key: str, parent: Conversation, *, upto: int) -> None:
        """Create the staged copy. Raises `Conflict` if the key exists."""
        self._batch, self._parent, self._upto = batch, parent, upto
        staged = batch.stage(key)
        with write_transaction(), connection.cursor() as cursor:
            created = sql.lock_heads(cursor, [staged], batch.chained_as)[staged]
        self.head = replace(created, key=key, copied_seq=upto)
        self._changes = RowChanges()
        self.handler = ""  # who answered at the end of what is copied

    def take(self) -> None:
        """Copy all events. Raises `Conflict` if the parent, or the staged copy, is removed in the meantime."""
        while self.head.head_seq < self._upto:
            page = self._read()
            if not page:
                raise Conflict(f"the events of {self._parent.key!r} no longer exist: it has been removed")
            flat = self._chained(page)
            with write_transaction(), connection.cursor() as cursor:
                cursor.execute(_ALIVE, [time.time_ns() // 1000, self.head.id])
                if cursor.rowcount != 1:
                    raise Conflict("the fork was cleaned up as abandoned: fork again", code="discarded")
                sql.insert_copies(cursor, flat)

    def publish(self) -> None:
        """Make the fork visible, inside the caller's `write_transaction()`; later events are appended under its key."""
        with connection.cursor() as cursor:
            sql.advance(cursor, [self.head])
            sql.write_changes(cursor, self._changes)
        self._batch.publish()

    def discard(self) -> None:
        """Delete the staged copy."""
        self._batch.discard()

    def _read(self) -> list[bounded_reads.Row]:
        params = self._parent.pk, self.head.head_seq, self._upto
        with connection.cursor() as cursor:
            return bounded_reads.rows(cursor, _COLUMNS, _EVENTS, params, order="seq", limit=PAGE)

    def _chained(self, page: list[bounded_reads.Row]) -> list[Any]:
        """Chain a page again and fold it. A redacted body's tombstone becomes ordinary content of this chain; an event
        that lost one field is treated like any other."""
        head, flat, salts = self.head, list[Any](), os.urandom(hash_chain.SALT * len(page))
        for n, (seq, kind, at, principal, run, turn, event_id, erased_by, body) in enumerate(page):
            salt = salts[n * hash_chain.SALT : (n + 1) * hash_chain.SALT]
            digest = hash_chain.digest(salt, body)
            erased_by = None if (erased_by or "").startswith(FIELD_MARK) else erased_by
            head.head_seq = seq
            of = (kind, at, principal, run, turn, event_id)
            head.head_hash = hash_chain.link(head.head_hash, head.identity, seq, *of, digest, erased_by)
            flat += (head.id, seq, *of, body, salt, digest, head.head_hash, erased_by)
            parsed = payload.parse(body.encode())
            projections.fold(self._changes, head, kind, EventFacts(parsed, at, principal, run, body))
            if named := named_handler(kind, principal, parsed):
                self.handler = named
        return flat


def named_handler(kind: str, principal: str, parsed: ParsedPayload) -> str:
    """Return the handler that an event names, if that counts, as in the fold (an import may only open conversations);
    else an empty text."""
    known = registry.declared(kind) if parsed.handler and kind in HANDLING else None
    counts = known is not None and known.may_be_said_by(principal) and principals.is_ours(principal)
    return (parsed.handler or "")[:200] if counts else ""
