"""Take out what is older than it may be kept, in short transactions beside live work. Called by the command `expire`
and by the retention job.

What is on legal hold stays, and so does what a run at work may need: a later call finds it again.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import groupby, takewhile
from typing import NamedTuple

from django.db import DatabaseError
from django.db.models import OuterRef, Subquery

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import write_ahead_log
from conversations.core.errors import Conflict, Unavailable
from conversations.models import Agent, Conversation, Event
from conversations.redaction import legal_holds, redact, selection

PAGE = 200  # events of one transaction
READ = 2_000  # rows of one read
SHARE = 1.0  # seconds of rest for each second of work

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]  # expired, looked at
GoesOn = Callable[[], bool]


class RetentionScope(NamedTuple):
    """What is too old. Empty: of any kind, in any conversation, of any team."""

    older_than: int  # µs UTC
    kinds: Sequence[str] = ()
    conversation: str = ""
    team: str = ""  # of the agent that handles the conversation


class AgedEvent(NamedTuple):
    """An event that is too old."""

    conversation: int
    seq: int
    kind: str


def matching(rule: RetentionScope) -> Iterator[list[AgedEvent]]:
    """Go through the events that are too old, a bounded read at a time, by the order in which they were recorded: to
    the end, since a clock that was ahead, or a fork, leaves older events behind newer ones."""
    chosen = _Conversations(rule)
    events, place = Event.objects.all(), "pk"
    if rule.conversation:
        events, place = events.filter(conversation__key=rule.conversation), "seq"
    aged = events.filter(selection.SAYS_SOMETHING, at__lt=rule.older_than).exclude(kind__in=selection.NO_WORDS)
    aged = aged.filter(kind__in=rule.kinds) if rule.kinds else aged
    places = events.values_list(place, flat=True)
    first, last = places.order_by(place).first() or 0, places.order_by(f"-{place}").first() or 0
    for begin in range(first, last + 1, READ):
        page = aged.filter(**{f"{place}__gte": begin, f"{place}__lt": begin + READ}).order_by(place)
        rows = [AgedEvent(*row) for row in page.values_list("conversation_id", "seq", "kind")]
        chosen.look_up({event.conversation for event in rows})
        yield [event for event in rows if chosen.has(event)]


class _Conversations:
    """Which conversations a rule is about, and which of their events are copies that are not too old: looked up once
    each."""

    def __init__(self, rule: RetentionScope) -> None:
        self._rule = rule
        self._agents = set(Agent.objects.filter(team=rule.team).values_list("name", flat=True)) if rule.team else set()
        self._after: dict[int, int | None] = {}  # events after this number are meant; None: none of it

    def look_up(self, conversations: Set[int]) -> None:
        rows = Conversation.objects.published().filter(pk__in=conversations - self._after.keys())
        forked = Event.objects.filter(conversation=OuterRef("pk"), seq=OuterRef("copied_seq") + 1).values("at")
        for pk, handler, copied, forked_at in rows.values_list("pk", "handler", "copied_seq", Subquery(forked)):
            is_young = copied > 0 and forked_at is not None and forked_at >= self._rule.older_than
            self._after[pk] = (copied if is_young else 0) if self._fits(handler) else None

    def has(self, event: AgedEvent) -> bool:
        after = self._after.get(event.conversation)
        return after is not None and event.seq > after

    def _fits(self, handler: str) -> bool:
        return not self._rule.team or handler.removeprefix("agent:") in self._agents


def preview(rule: RetentionScope) -> tuple[Counter[str], int]:
    """Count by kind what a rule would take, and how many of these are held back now."""
    counts: Counter[str] = Counter()
    held = 0
    blocked: dict[int, bool] = {}
    for page in matching(rule):
        for event in page:
            counts[event.kind] += 1
            if event.conversation not in blocked:
                row = Conversation.objects.filter(pk=event.conversation).first()
                blocked[event.conversation] = row is not None and redact.why_blocked(row) != ""
            held += blocked[event.conversation]
    return counts, held


def expire(
    by: Who, rule: RetentionScope, reason: str, progress: Progress, *, goes_on: GoesOn = lambda: True
) -> tuple[int, int]:
    """Take them out; return how many events lost their words, and how many were held back. `goes_on`: looked at
    between two transactions."""
    reason = legal_holds.checked_reason(reason)
    expired = held = 0
    redact.fold_rest()  # of a round that was killed
    try:
        for conversation, seqs in _pages(rule, goes_on):
            if not goes_on():
                break
            began = time.monotonic()
            is_done = _expire(by, conversation, seqs, rule, reason)
            expired += len(seqs) if is_done else 0
            held += len(seqs) if is_done is False else 0
            progress(expired, expired + held)
            write_ahead_log.shorten()
            time.sleep((time.monotonic() - began) * SHARE)
    finally:
        redact.fold_rest()
    return expired, held


def _pages(rule: RetentionScope, goes_on: GoesOn) -> Iterator[tuple[int, list[int]]]:
    """Return what one transaction takes: events of one conversation."""
    for page in takewhile(lambda _: goes_on(), matching(rule)):
        for conversation, rows in groupby(sorted(page), key=lambda event: event.conversation):
            seqs = [event.seq for event in rows]
            for at in range(0, len(seqs), PAGE):
                yield conversation, seqs[at : at + PAGE]


def _expire(by: Who, conversation: int, seqs: Sequence[int], rule: RetentionScope, reason: str) -> bool | None:
    """Take out events of one conversation; return False where a hold is in force or a run is at work, or a mistake of
    ours stops it, which costs these events alone; None if the conversation was removed meanwhile."""
    row = Conversation.objects.filter(pk=conversation).first()
    if row is None:
        return None
    if redact.why_blocked(row):
        return False  # nobody's wish is refused: no entry
    target = f"conversation:{row.key}"
    try:
        with audited_action(by, "expire", target, right="redact") as principal:
            part = selection.part_of(row, seqs)
            if not part.events:
                return True  # somebody redacted them meanwhile
            redact.lock_for_redaction([part])
            redact.erase(part, principal, reason, older_than=rule.older_than, refolds=False)
            facts = {"conversation": row.key, "seqs": part.seqs}
            chain.add_entry(principal, "expire", target, reason=reason, correlation=facts)
    except Conflict:
        return False
    except (DatabaseError, Unavailable):
        raise
    except Exception:
        logger.exception("events %s to %s of conversation %s cannot be redacted", seqs[0], seqs[-1], row.key)
        return False
    return True
