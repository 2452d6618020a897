"""A fork's beginning: another conversation's events 1…N under a new chain (design 5). Called by `actions.forks`.

    copied = Copied(log.Batch(), "new key", parent, upto=120)
    copied.take()                       # page by page, each in a transaction of its own; nobody sees them yet
    with writing():
        copied.publish()                # seen from the commit on, with what is appended after it

Kind, time, principal, ids and body stay as they were, so history reads the same; salt and hashes are the fork's own.
What is cut off half-way is removed with the imports that never ended (`staging`).
"""

import os
import time
from typing import Any

from django.db import connection

from conversations import envelopes, principals, projections
from conversations.errors import Conflict
from conversations.log import chain, rows
from conversations.log.staging import Batch
from conversations.log.writing import writing
from conversations.models import Conversation
from conversations.projections import Facts, Fold, Head

PAGE = 500  # events a transaction
HANDLING = ("conversation.opened", "conversation.forked", "conversation.handler")  # what may name who answers
_READ = """SELECT seq,kind,at,principal,run,turn,event_id,body,salt,digest,erased_by FROM conversations_event
WHERE conversation_id=%s AND seq>%s AND seq<=%s ORDER BY seq LIMIT %s"""
_ALIVE = "UPDATE conversations_conversation SET last_at=%s WHERE id=%s"


class Copied:
    """Events of a parent on their way into a fork. Used in one thread; end it with `publish` or `discard`."""

    def __init__(self, batch: Batch, key: str, parent: Conversation, *, upto: int) -> None:
        """Raises `Conflict` when the key exists."""
        self._batch, self._parent, self._upto = batch, parent, upto
        staged = batch.stage(key)
        with writing(), connection.cursor() as cursor:
            made = rows.lock_heads(cursor, [staged], batch.chained_as)[staged]
        self.head = Head(id=made.id, key=key, head_hash=made.head_hash, copied_seq=upto)
        self._changes = Fold()
        self.handler = ""  # who answered at the end of what is copied

    def take(self) -> None:
        """Copy all of them. Raises `Conflict` when the parent, or what is staged here, goes away meanwhile."""
        while self.head.head_seq < self._upto:
            page = self._read()
            if not page:
                raise Conflict(f"the events of {self._parent.key!r} are gone: it was removed meanwhile")
            flat = self._chained(page)
            with writing(), connection.cursor() as cursor:
                cursor.execute(_ALIVE, [time.time_ns() // 1000, self.head.id])
                if cursor.rowcount != 1:
                    raise Conflict("the fork was taken for an abandoned one: fork again", code="discarded")
                rows.insert_copies(cursor, flat)

    def publish(self) -> None:
        """Make it seen, inside the caller's `writing()`; more is appended under its key from then on."""
        with connection.cursor() as cursor:
            rows.advance(cursor, [self.head])
            rows.write_changes(cursor, self._changes)
        self._batch.publish()

    def discard(self) -> None:
        """Remove what was copied."""
        self._batch.discard()

    def _read(self) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(_READ, [self._parent.pk, self.head.head_seq, self._upto, PAGE])
            return list(cursor.fetchall())

    def _chained(self, page: list[tuple[Any, ...]]) -> list[Any]:
        """Chain a page anew and fold it. A tombstone has lost its salt: its digest stays."""
        head, flat, salts = self.head, list[Any](), os.urandom(chain.SALT * len(page))
        for n, (seq, kind, at, principal, run, turn, event_id, body, salt, digest, erased_by) in enumerate(page):
            if salt is not None:
                salt = salts[n * chain.SALT : (n + 1) * chain.SALT]
                digest = chain.digest(salt, body)
            head.head_seq = seq
            head.head_hash = chain.link(head.head_hash, head.key, seq, kind, at, principal, event_id, digest)
            flat += (head.id, seq, kind, at, principal, run, turn, event_id, body, salt, digest, head.head_hash)
            flat.append(erased_by)
            said = envelopes.read(body.encode())
            projections.fold(self._changes, head, kind, Facts(said, at, principal, run, body))
            if said.handler and kind in HANDLING and principals.is_ours(principal):
                self.handler = said.handler[:200]
        return flat
