"""Compute the state of a conversation as it was right after one of its events, by folding the events up to it.

A fold is cached with checkpoints along the way, so that the next request folds only the events in between. Called by
the views of a past moment.
"""

import copy
import pickle
import threading
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from django.db import connection

from conversations.core.errors import Invalid
from conversations.events import epoch, payload, projections
from conversations.events.log import bounded_reads, refold
from conversations.events.projections import ConversationHead, EventFacts, RowChanges
from conversations.events.projections.row_changes import ApprovalRow, RunRow
from conversations.models import Conversation

FARTHEST = 50_000  # events that are folded for one moment
STEP = 2_000  # events between two checkpoints, and of one read
KEPT = 8  # conversations


class PastState(NamedTuple):
    """The state right after event `seq`, which was committed at `at` (µs UTC)."""

    seq: int
    at: int
    head: ConversationHead
    participants: int
    runs: list[RunRow]  # in the order in which they were queued, ended ones too
    pending: list[ApprovalRow]
    open_calls: int


def state_at(conversation: Conversation, seq: int) -> PastState:
    """Return the state right after an event, from 1 to the head. Raises `Invalid` beyond 50,000 events."""
    if seq > FARTHEST:
        raise Invalid(f"the state can be computed only up to event {FARTHEST:,}", field="at")
    fold = _fold_of(conversation.pk, conversation.key, epoch.current())
    with fold.guard:
        head, changes = fold.upto(seq)
        return _state(conversation.pk, head, changes)


def _state(pk: int, head: ConversationHead, changes: RowChanges) -> PastState:
    runs = sorted(changes.runs.values(), key=lambda run: run.queued_seq)
    waiting = {run.id for run in runs if run.status == "waiting"}
    pending = [row for row in changes.approvals.values() if row.status == "pending" and row.run in waiting]
    head = copy.copy(head)
    head.settle()
    return PastState(
        seq=head.head_seq,
        at=head.last_at,
        head=head,
        participants=sum(conversation == pk for conversation, _ in changes.participants),
        runs=[copy.copy(run) for run in runs],
        pending=sorted(map(copy.copy, pending), key=lambda row: row.asked_seq),
        open_calls=sum(call.finished_seq is None for call in changes.new_calls.values()),
    )


class _Fold:
    """A fold and copies of it, each keyed by the last event it includes."""

    def __init__(self, pk: int, key: str) -> None:
        self.guard = threading.Lock()
        self._pk = pk
        self._last = refold.begin(pk, key)
        self._checkpoints = [(0, pickle.dumps(self._last))]  # of our own making: nothing else is ever loaded

    def upto(self, seq: int) -> tuple[ConversationHead, RowChanges]:
        """Continue the fold up to an event, from the nearest earlier copy."""
        if self._last[0].head_seq > seq:
            at = bisect_right([upto for upto, _ in self._checkpoints], seq) - 1
            self._last = pickle.loads(self._checkpoints[at][1])
        head, changes = self._last
        for number, kind, event in _events(self._pk, head.head_seq, seq):
            head.head_seq = number
            projections.fold(changes, head, kind, event)
            if number % STEP == 0 and number > self._checkpoints[-1][0]:
                self._checkpoints.append((number, pickle.dumps((head, changes))))
        return head, changes


@lru_cache(maxsize=KEPT)
def _fold_of(pk: int, key: str, _epoch: str) -> _Fold:
    return _Fold(pk, key)


def _events(pk: int, after: int, upto: int) -> Iterator[tuple[int, str, EventFacts]]:
    """Read the events that the fold uses, page by page."""
    source = "FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s"
    while after < upto:
        with connection.cursor() as cursor:
            rows = bounded_reads.rows(
                cursor, "seq,kind,at,principal,run,body", source, [pk, after, upto], order="seq", limit=STEP
            )
        if not rows:
            return
        for seq, kind, at, principal, run, body in rows:
            yield seq, kind, EventFacts(payload.parse(body.encode()), at, principal, run, body)
        after = rows[-1][0]
