"""`append`: the only function that assigns `seq` and stores events (law B), in one transaction, without gaps, each id
once. Called by actions, and by `writer_threads.py` for event loops. It folds each event into the state rows, and its
commit calls the listeners (`commit_listeners.py`): for what pages show, `Hub._on_committed` of `realtime/hub.py`."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connections
from django.db.backends.utils import CursorWrapper

from conversations.core import principals
from conversations.core.db_threads import sqlstate
from conversations.core.failpoints import failpoint
from conversations.core.write_transaction import in_write_transaction, write_transaction
from conversations.events import commit_listeners, projections
from conversations.events.log import (
    approval_cancellation,
    fencing,
    hash_chain,
    lock_waits,
    open_calls,
    sql,
    token_check,
)
from conversations.events.log.call_events import BROKEN_OFF, STEPS
from conversations.events.log.deduplication import ExistingIds, load_existing
from conversations.events.log.lock_waits import LockWait
from conversations.events.log.message_triggers import MessageTriggers
from conversations.events.log.records import NewEvent, Stored
from conversations.events.log.token_buffers import merge_tokens
from conversations.events.projections import ConversationHead, EventFacts, RowChanges

TRIES = 3
DEADLOCKS = ("40P01", "40001")  # PostgreSQL's: deadlock detected, could not serialize

OF_CALLS = frozenset((*STEPS, *BROKEN_OFF))
_REDIS = str(principals.REDIS)
_NO_STAGING: Mapping[str, str] = {}
_merge_group_of = attrgetter("merge_group")
_seq_of = attrgetter("seq")


def append(
    batch: Sequence[NewEvent],
    *,
    chained_as: Mapping[str, str] = _NO_STAGING,
    in_same_transaction: Callable[[], None] | None = None,
    on_clash: Callable[[Sequence[Stored]], None] | None = None,
    wait: LockWait | None = None,
    checks_tokens: bool = False,
) -> list[Stored]:
    """Store a batch of events and return one `Stored` for each, in order. After the commit, `commit_listeners` are
    notified.

    - An id that is already stored: outside a transaction, the batch is first written as if every id were new. If that
      violates a unique index, everything is rolled back, and the retry looks up the ids under the lock. Inside a
      caller's `write_transaction()`, which cannot be rolled back here, ids are looked up before writing.
    - `chained_as` maps staged keys to final ones.
    - `on_clash` is called with the results if an id already exists with different content.
    - `in_same_transaction` is called last; it changes further rows (such as a read position).
    - Both callbacks run again if the batch is retried; an exception from either rolls everything back.
    - `wait` limits how long to wait for locks. With it, raises `LockedElsewhere` for rows that others have locked.
    - `checks_tokens`: raises `TokenRevoked` if a token among the principals is revoked.
    """
    how = _Options(chained_as, in_same_transaction, on_clash, wait, checks_tokens)
    if in_write_transaction():
        return _append(batch, how, is_checked=True)
    for tries_left in reversed(range(TRIES)):
        try:
            with write_transaction():
                stored = _append(batch, how, is_checked=tries_left < TRIES - 1)
                failpoint("before-commit")
            break
        except (IntegrityError, OperationalError) as error:
            if not tries_left or not _is_worth_another_try(error):
                raise
    return stored


def _is_worth_another_try(error: Exception) -> bool:
    """Return whether a retry may succeed: an id already existed, or two transactions deadlocked (possible for a
    signal's id and another conversation's; everything else is locked in one order)."""
    return isinstance(error, IntegrityError) or sqlstate(error) in DEADLOCKS


class _Options(NamedTuple):
    """How a batch is stored: `append`'s parameters."""

    chained_as: Mapping[str, str]
    in_same_transaction: Callable[[], None] | None
    on_clash: Callable[[Sequence[Stored]], None] | None
    wait: LockWait | None
    checks_tokens: bool


def _append(batch: Sequence[NewEvent], how: _Options, *, is_checked: bool) -> list[Stored]:
    here = connections[DEFAULT_DB_ALIAS]  # this thread's, looked up once: the proxy does it for every attribute
    with here.wrap_database_errors, here.cursor() as cursor:
        lock_waits.set_lock_timeout(cursor, how.wait)
        keys = sorted({e.conversation for e in batch if e.conversation is not None})
        heads = lock_waits.lock_heads(cursor, keys, how.chained_as, how.wait) if keys else {}
        for key, head in heads.items() if how.chained_as else ():
            head.key = how.chained_as.get(key, key)  # what comes of the key, the final one has to give again
            head.identity = hash_chain.identity_of(head.key, head.key_digest)
        existing = load_existing(cursor, batch, heads) if is_checked else None
        fencing.check_fence(cursor, batch)
        work = _Work(cursor, heads, batch)
        if how.checks_tokens:
            skips = how.wait is not None and how.wait.skips
            work.changes.token_agents = token_check.agents_of_good_tokens(cursor, batch, skips=skips)
        stored = work.store_all(batch, existing)
        work.write()
    if how.on_clash is not None and any(s.clashes for s in stored):
        how.on_clash(stored)
    if how.in_same_transaction is not None:
        how.in_same_transaction()
    fresh = [s for s in (*stored, *work.more) if s.is_new and s.seq]
    if work.more:  # they follow the events that caused them, so listeners get each conversation in the order of seq
        fresh.sort(key=_seq_of)
    if fresh and not how.chained_as:
        here.on_commit(lambda: _committed(fresh), robust=True)  # stored is stored, whoever listens
    if work.topics:
        here.on_commit(lambda: commit_listeners.notify_posted(work.topics), robust=True)
    return stored


def _committed(fresh: list[Stored]) -> None:
    """Tell the listeners: for sockets, `Hub._on_committed` (`realtime/hub.py`)."""
    failpoint("after-commit")
    failpoint("before-notification")
    commit_listeners.notify_committed(fresh)


class _Work:
    """The rows of one batch, collected in flat lists as the block statements expect them."""

    def __init__(self, cursor: CursorWrapper, heads: dict[str, ConversationHead], batch: Sequence[NewEvent]) -> None:
        self.cursor, self.heads = cursor, heads
        self.at = time.time_ns() // 1000
        self.salts = os.urandom(hash_chain.SALT * len(batch))
        self.salted = 0  # bytes of them that are used
        self.events: list[Any] = []
        self.posts: list[Any] = []
        self.topics: set[str] = set()
        self.touched: dict[int, ConversationHead] = {}
        self.more: list[Stored] = []  # events that the batch caused, such as `run.queued`
        self.triggers = MessageTriggers.of_batch(batch)
        steps = [(heads[e.conversation], e) for e in batch if e.kind in OF_CALLS and e.conversation is not None]
        self.changes = prepare(cursor, steps)

    def store_all(self, batch: Sequence[NewEvent], existing: ExistingIds | None) -> list[Stored]:
        """Store events one by one, with the tokens of a merge group joined; return one `Stored` for each."""
        stored: list[Stored] = []
        for merge_group, events in groupby(batch, key=_merge_group_of):
            if merge_group:
                stored += self._store_merged(list(events), existing)
            else:
                stored += [self.store(event, existing) for event in events]
        return stored

    def _store_merged(self, tokens: Sequence[NewEvent], existing: ExistingIds | None) -> list[Stored]:
        """Store the tokens that are not stored yet as one event; each token's post keeps its own id and digest."""
        head = self.heads[tokens[0].conversation or ""]
        fresh = [token for token in tokens if existing is None or existing.find(head.id, token) is None]
        if len(fresh) < 2:
            return [self.store(token, existing) for token in tokens]
        joined = self.store(merge_tokens(fresh), existing)
        salt = self.events[-3]
        for token in fresh:
            digest = sha256(salt + token.body.encode()).hexdigest()
            self.posts += (token.topic, token.bus_id, head.id, joined.seq, digest, self.at)
            if existing is not None:
                existing.add_part(token, head.id, joined.seq, salt, digest)
        rest = iter([joined, *[joined._replace(is_new=False)] * (len(fresh) - 1)])  # one event, told once
        are_fresh = {id(token) for token in fresh}
        return [next(rest) if id(token) in are_fresh else self.store(token, existing) for token in tokens]

    def store(self, event: NewEvent, existing: ExistingIds | None) -> Stored:
        """Number, chain and fold one event, or return where it is already stored."""
        if event.conversation is None:
            return self._post_only(event, existing)
        head = self.heads[event.conversation]
        if existing is not None and (duplicate := existing.find(head.id, event)) is not None:
            if not duplicate.clashes and event.topic and not duplicate.is_posted:
                self._post(event, head.id, duplicate.seq, existing)
            return self._stored(event, duplicate.seq, is_new=False, clashes=duplicate.clashes)
        seq = head.head_seq = head.head_seq + 1
        of = self.salted
        self.salted += hash_chain.SALT
        _, kind, body, principal, payload, event_id, run, turn = event[:8]
        salt, at = self.salts[of : self.salted] or os.urandom(hash_chain.SALT), self.at
        digest = sha256(salt + body.encode()).hexdigest()
        link = hash_chain.link(head.head_hash, head.identity, seq, kind, at, principal, run, turn, event_id, digest)
        head.head_hash = link
        self.events += (head.id, seq, kind, at, principal, run, turn, event_id, body, salt, digest, link)
        if existing is not None:
            existing.add(head.id, event, seq, salt, digest)
        if event.topic:
            self._post(event, head.id, seq, existing)
        self.touched[head.id] = head
        projections.fold(self.changes, head, kind, EventFacts(payload, at, principal, run, body))
        if run is not None and kind in BROKEN_OFF:
            self.more += [
                self.store(closed, existing)
                for closed in approval_cancellation.cancellations_for(event, head, self.changes)
            ]
        if self.triggers is not None and kind == "message":
            self.more += [self.store(queued, existing) for queued in self.triggers.of(event, head)]
        return Stored(event.conversation, seq, kind, at, principal, run, turn, event_id, body)

    def write(self) -> None:
        """Write all collected rows to the tables, heads first (their rows are locked)."""
        sql.advance(self.cursor, self.touched.values())
        sql.insert_events(self.cursor, self.events)
        sql.insert_posts(self.cursor, self.posts)
        sql.write_changes(self.cursor, self.changes)

    def _post_only(self, event: NewEvent, existing: ExistingIds | None) -> Stored:
        posted_body = existing.find_post(event) if existing is not None else None
        if posted_body is None:
            self.posts += (event.topic, event.bus_id, None, None, event.body, self._sent_at(event))
            self.topics.add(event.topic)
            if existing is not None:
                existing.add_post_only(event)
            return self._stored(event, 0)
        return self._stored(event, 0, is_new=False, clashes=posted_body != event.body)

    def _post(self, event: NewEvent, conversation: int, seq: int, existing: ExistingIds | None) -> None:
        self.posts += (event.topic, event.bus_id, conversation, seq, None, self._sent_at(event))
        if not event.topic.startswith("stream:"):
            self.topics.add(event.topic)
        if existing is not None:
            existing.add_post(event, conversation, seq)

    def _sent_at(self, event: NewEvent) -> int | None:
        """Return when a post counts as sent if the relay need not send it: stream posts are kept for their id only, and
        Redis already has what came from it."""
        is_sent = event.topic.startswith("stream:") or event.principal == _REDIS
        return self.at if is_sent else None

    def _stored(self, event: NewEvent, seq: int, *, is_new: bool = True, clashes: bool = False) -> Stored:
        key = event.conversation or ""
        fields = (key, seq, event.kind, self.at, event.principal, event.run, event.turn, event.event_id, event.body)
        return Stored(*fields, is_new, clashes)


def prepare(cursor: CursorWrapper, steps: Iterable[tuple[ConversationHead, NewEvent]]) -> RowChanges:
    """Create the batch's fold, with the stored calls that its events may change and the uses of their call ids."""
    changes = RowChanges()
    by_conversation: dict[int, list[NewEvent]] = {}
    for head, event in steps:
        by_conversation.setdefault(head.id, []).append(event)
    if by_conversation:
        changes.uses = open_calls.uses(cursor, by_conversation)
        changes.open_calls |= open_calls.read(cursor, by_conversation, changes.uses)
    return changes
