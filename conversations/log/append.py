"""`append`: the one place that allots `seq` and stores events (law B). One transaction, gapless, each id once."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connections
from django.db.backends.utils import CursorWrapper

from conversations import doorbell, principals, projections
from conversations.failpoints import failpoint
from conversations.log import chain, closing, fences, rows
from conversations.log.calls import BROKEN_OFF, STEPS
from conversations.log.events import NewEvent, Stored
from conversations.log.known import Known, look_up
from conversations.log.queue import Queue
from conversations.log.segments import whole
from conversations.log.writing import is_writing, writing
from conversations.projections import Facts, Fold, Head
from conversations.threads import sqlstate

TRIES = 3
DEADLOCKS = ("40P01", "40001")  # PostgreSQL's: deadlock detected, could not serialize

OF_CALLS = (*STEPS, *BROKEN_OFF)
_REDIS = str(principals.REDIS)
_NO_STAGING: Mapping[str, str] = {}
_segment_of = attrgetter("segment")


def append(
    batch: Sequence[NewEvent],
    *,
    chained_as: Mapping[str, str] = _NO_STAGING,
    riding: Callable[[], None] | None = None,
    on_clash: Callable[[Sequence[Stored]], None] | None = None,
) -> list[Stored]:
    """Store the batch; answer one `Stored` for each, in order. After the commit the doorbell rings.

    Alone it numbers as if every id were new and looks ids up, under the lock, only after an IntegrityError has rolled
    everything back. Inside another `writing()` it looks first, since that transaction is not its own to roll back.
    `chained_as` maps staged keys to final ones. `riding` changes rows in the same transaction, after the events (a read
    position), and where an id stands for other words already `on_clash` is given the answers before: both run again
    when the batch does, and what they raise rolls everything back.
    """
    if is_writing():
        return _append(batch, dict(chained_as), riding, on_clash, is_checked=True)
    for tries_left in reversed(range(TRIES)):
        try:
            with writing():
                stored = _append(batch, dict(chained_as), riding, on_clash, is_checked=tries_left < TRIES - 1)
                failpoint("before-commit")
            break
        except (IntegrityError, OperationalError) as error:
            if not tries_left or not _is_worth_another_try(error):
                raise
    return stored


def _is_worth_another_try(error: Exception) -> bool:
    """Tell whether the transaction that was rolled back may do better: an id was known, or two waited for each other
    (a signal's id and another conversation's may meet; everything else is locked in one order)."""
    return isinstance(error, IntegrityError) or sqlstate(error) in DEADLOCKS


def _append(
    batch: Sequence[NewEvent],
    chained_as: dict[str, str],
    riding: Callable[[], None] | None,
    on_clash: Callable[[Sequence[Stored]], None] | None,
    *,
    is_checked: bool,
) -> list[Stored]:
    here = connections[DEFAULT_DB_ALIAS]  # this thread's, looked up once: the proxy does it for every attribute
    with here.wrap_database_errors, here.cursor() as cursor:
        keys = sorted({e.conversation for e in batch if e.conversation is not None})
        heads = rows.lock_heads(cursor, keys, chained_as) if keys else {}
        for staged_key in chained_as.keys() & heads.keys():
            heads[staged_key].key = chained_as[staged_key]  # what comes of the key, the final one has to give again
        known = look_up(cursor, batch, heads) if is_checked else None
        fences.check(cursor, batch)
        work = _Work(cursor, heads, batch)
        stored = work.store_all(batch, known)
        work.write()
    if on_clash is not None and any(s.clashes for s in stored):
        on_clash(stored)
    if riding is not None:
        riding()
    fresh = [s for s in (*stored, *work.more) if s.is_new and s.seq]
    if fresh and not chained_as:
        here.on_commit(lambda: _committed(fresh), robust=True)  # stored is stored, whoever listens
    if work.topics:
        here.on_commit(lambda: doorbell.posted(work.topics), robust=True)
    return stored


def _committed(fresh: list[Stored]) -> None:
    failpoint("after-commit")
    failpoint("before-doorbell")
    doorbell.ring(fresh)


class _Work:
    """One batch on its way into the tables: flat lists are what the block statements take."""

    def __init__(self, cursor: CursorWrapper, heads: dict[str, Head], batch: Sequence[NewEvent]) -> None:
        self.cursor, self.heads = cursor, heads
        self.at = time.time_ns() // 1000
        self.salts = os.urandom(chain.SALT * len(batch))
        self.salted = 0  # bytes of them that are used
        self.events: list[Any] = []
        self.posts: list[Any] = []
        self.topics: set[str] = set()
        self.touched: dict[int, Head] = {}
        self.more: list[Stored] = []  # what the batch itself brought about
        self.queue = Queue.of_batch(batch)
        steps = [(heads[e.conversation], e) for e in batch if e.kind in OF_CALLS and e.conversation is not None]
        self.changes = prepare(cursor, steps)

    def store_all(self, batch: Sequence[NewEvent], known: Known | None) -> list[Stored]:
        """Store one after the other, the tokens of a segment together; answer one `Stored` for each."""
        stored: list[Stored] = []
        for segment, events in groupby(batch, key=_segment_of):
            if segment:
                stored += self._store_segment(list(events), known)
            else:
                stored += [self.store(event, known) for event in events]
        return stored

    def _store_segment(self, tokens: Sequence[NewEvent], known: Known | None) -> list[Stored]:
        """Store as one event those tokens that are not stored yet; a post of each keeps its id and its own digest."""
        head = self.heads[tokens[0].conversation or ""]
        fresh = [token for token in tokens if known is None or known.find(head.id, token) is None]
        if len(fresh) < 2:
            return [self.store(token, known) for token in tokens]
        joined = self.store(whole(fresh), known)
        salt = self.events[-3]
        for token in fresh:
            digest = sha256(salt + token.body.encode()).hexdigest()
            self.posts += (token.topic, token.bus_id, head.id, joined.seq, digest, self.at)
            if known is not None:
                known.add_part(token, head.id, joined.seq, salt, digest)
        rest = iter([joined, *[joined._replace(is_new=False)] * (len(fresh) - 1)])  # one event, told once
        are_fresh = {id(token) for token in fresh}
        return [next(rest) if id(token) in are_fresh else self.store(token, known) for token in tokens]

    def store(self, event: NewEvent, known: Known | None) -> Stored:
        """Number one event, chain it and fold it; or answer where it already is."""
        if event.conversation is None:
            return self._post_only(event, known)
        head = self.heads[event.conversation]
        if known is not None and (found := known.find(head.id, event)) is not None:
            if not found.clashes and event.topic and not found.is_posted:
                self._post(event, head.id, found.seq, known)
            return self._stored(event, found.seq, is_new=False, clashes=found.clashes)
        seq = head.head_seq = head.head_seq + 1
        of = self.salted
        self.salted += chain.SALT
        _, kind, body, principal, said, event_id, run, turn = event[:8]
        salt, at = self.salts[of : self.salted] or os.urandom(chain.SALT), self.at
        digest = sha256(salt + body.encode()).hexdigest()
        link = chain.link(head.head_hash, head.key, seq, kind, at, principal, event_id, digest)
        head.head_hash = link
        self.events += (head.id, seq, kind, at, principal, run, turn, event_id, body, salt, digest, link)
        if known is not None:
            known.add(head.id, event, seq, salt, digest)
        if event.topic:
            self._post(event, head.id, seq, known)
        self.touched[head.id] = head
        projections.fold(self.changes, head, kind, Facts(said, at, principal, run, body))
        if kind in BROKEN_OFF and run is not None:
            self.more += [self.store(closed, known) for closed in closing.of(event, head, self.changes)]
        if self.queue is not None:
            self.more += [self.store(queued, known) for queued in self.queue.of(event, head)]
        return Stored(event.conversation, seq, kind, at, principal, run, turn, event_id, body)

    def write(self) -> None:
        """Put everything into the tables, heads first (their rows are locked)."""
        rows.advance(self.cursor, self.touched.values())
        rows.insert_events(self.cursor, self.events)
        rows.insert_posts(self.cursor, self.posts)
        rows.write_changes(self.cursor, self.changes)

    def _post_only(self, event: NewEvent, known: Known | None) -> Stored:
        found = known.find_post(event) if known is not None else None
        if found is None:
            self.posts += (event.topic, event.bus_id, None, None, event.body, self._sent_at(event))
            self.topics.add(event.topic)
            if known is not None:
                known.add_post_only(event)
            return self._stored(event, 0)
        return self._stored(event, 0, is_new=False, clashes=found != event.body)

    def _post(self, event: NewEvent, conversation: int, seq: int, known: Known | None) -> None:
        self.posts += (event.topic, event.bus_id, conversation, seq, None, self._sent_at(event))
        if not event.topic.startswith("stream:"):
            self.topics.add(event.topic)
        if known is not None:
            known.add_post(event, conversation, seq)

    def _sent_at(self, event: NewEvent) -> int | None:
        """Say that the relay need not send it: a stream's is kept for its id only, Redis has what came from there."""
        is_sent = event.topic.startswith("stream:") or event.principal == _REDIS
        return self.at if is_sent else None

    def _stored(self, event: NewEvent, seq: int, *, is_new: bool = True, clashes: bool = False) -> Stored:
        key = event.conversation or ""
        fields = (key, seq, event.kind, self.at, event.principal, event.run, event.turn, event.event_id, event.body)
        return Stored(*fields, is_new, clashes)


def prepare(cursor: CursorWrapper, steps: Iterable[tuple[Head, NewEvent]]) -> Fold:
    """Make the batch's fold, with the stored calls its events may change and the uses of their call ids."""
    changes = Fold()
    by_conversation: dict[int, list[NewEvent]] = {}
    for head, event in steps:
        by_conversation.setdefault(head.id, []).append(event)
    for conversation, events in by_conversation.items():
        said = [e.said for e in events if e.kind not in BROKEN_OFF]
        ids = sorted({s.tool_call_id for s in said if s.tool_call_id is not None})
        names = sorted({(s.name or "")[:200] for s in said if s.tool_call_id is None})
        ours = sorted({e.said.tool_call for e in events if e.run is not None and e.said.tool_call})
        runs = sorted({e.run for e in events if e.run is not None and e.kind in BROKEN_OFF})
        changes.open_calls[conversation] = rows.open_calls(cursor, conversation, ids, names, ours, runs, len(events))
        for run, call_id, nth in rows.uses(cursor, conversation, ids):
            changes.uses[conversation, run, call_id] = nth
    return changes
