"""Store rounds of entries: events, quarantine and read positions in one transaction (law C). In one thread.

The position is the fence: it moves only from where this recorder saw it last. If it is elsewhere, another recorder has
won: everything is rolled back and RecorderSuperseded is raised.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from django.db import OperationalError, connection

from conversations.core.bounded_groups import blocks
from conversations.core.database_clock import database_now
from conversations.core.db_threads import is_unavailable, sqlstate
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events import epoch, log, payload
from conversations.events.log.commit_batch import is_of_lock
from conversations.events.log.lock_waits import AT_ONCE, BRIEFLY, LockedElsewhere, LockWait
from conversations.events.log.records import NewEvent
from conversations.events.projections import repeats_message
from conversations.models import Conversation, Event, Post, Quarantine, RedisPosition
from conversations.transport import entry_ids as ids
from conversations.transport.recorder import gap_detection, parse_entry
from conversations.transport.recorder.gap_detection import Loss
from conversations.transport.recorder.held_streams import HeldStream
from conversations.transport.recorder.parse_entry import StreamEntry
from conversations.transport.recorder.streams import Stream

logger = logging.getLogger(__name__)

BLOCK = 500  # rows a statement
SEARCH_FOR = 0.3  # seconds one round may spend to find out which of its entries waits for a lock
BRIEF_EVERY = 0.5  # seconds between attempts that wait for a lock: all other streams wait meanwhile
Moves = dict[str, tuple[str, int] | None]  # stream → entry id and count; None: the position goes

# Not WITH … UPDATE: of such a statement sqlite3 tells no row count.
_MOVE = """UPDATE conversations_redisposition SET last_id=v.column3,entries_read=CAST(v.column4 AS bigint)
FROM (VALUES {}) AS v WHERE conversations_redisposition.stream=v.column1
AND conversations_redisposition.last_id=v.column2"""


_FORGET = "DELETE FROM conversations_redisposition WHERE (stream,last_id) IN (VALUES {})"
TOO_LARGE = "54"  # PostgreSQL's class for a value that no index can take: the entry's fault, not the database's


class RecorderSuperseded(Exception):
    """Another recorder moved a position: it is the active one now."""


class EntryStore:
    """The database side of a recorder. Every method runs in the recorder's single database thread."""

    def __init__(self) -> None:
        self.events = self.gaps = self.quarantined = 0
        self.went_back_at = 0  # µs UTC: older entries are history, whose runs may have been in the lost one
        self._stored: dict[str, str] = {}
        self._wait: LockWait = AT_ONCE
        self._until = 0.0  # monotonic: the end of the search of this round
        self._first_held: dict[str, StreamEntry] = {}  # stream → its first entry of this round that waits
        self._brief_at = 0.0  # monotonic: the next try that waits
        self._brief = ""  # the stream of the last one

    def positions(self) -> dict[str, RedisPosition]:
        """Return how far every stream was read; from now on this recorder moves these positions."""
        self.went_back_at = epoch.went_back_at()
        by_stream = {position.stream: position for position in RedisPosition.objects.all()}
        self._stored = {name: position.last_id for name, position in by_stream.items()}
        return by_stream

    def follow(self, streams: Sequence[Stream]) -> None:
        """Insert positions for new streams. Raises RecorderSuperseded if another recorder just did."""
        rows = [
            RedisPosition(stream=s.name, last_id=s.last_id, entries_read=s.entries_read, found_at=s.found_at)
            for s in streams
        ]
        with log.write_transaction():
            for names in blocks([row.stream for row in rows], BLOCK):
                if RedisPosition.objects.filter(stream__in=names).exists():
                    raise RecorderSuperseded("another recorder found these streams first")
            RedisPosition.objects.bulk_create(rows, batch_size=BLOCK)
        self._stored |= {s.name: s.last_id for s in streams}

    def store(self, entries: Sequence[StreamEntry]) -> list[HeldStream]:
        """Store a round; return the streams that wait because a conversation they name is locked.

        Only an entry that cannot be stored is affected by its error: the round is halved until that entry is alone. So
        that busy conversations get their turn too, one held stream after the other is tried with a short wait.
        """
        self._first_held = {}
        self._try(entries, AT_ONCE)
        if (name := self._next_brief(self._first_held)) is not None:
            first = self._first_held.pop(name)
            self._try([e for e in entries if e.stream == name and e.place >= first.place], BRIEFLY)
        return [self._held_stream(entry) for entry in self._first_held.values()]

    def _next_brief(self, names: Collection[str]) -> str | None:
        """Return the held stream to wait for briefly now; None if there is none, or if it is too soon."""
        now = time.monotonic()
        if not names or now < self._brief_at:
            return None
        self._brief_at = now + BRIEF_EVERY
        self._brief = min((name for name in names if name > self._brief), default=min(names))
        return self._brief

    def _try(self, entries: Sequence[StreamEntry], wait: LockWait) -> None:
        self._wait, self._until = wait, time.monotonic() + SEARCH_FOR
        try:
            self._store_free(entries)
        finally:
            self._wait = AT_ONCE

    def _store_free(self, entries: Sequence[StreamEntry]) -> None:
        """Store the entries of unlocked conversations; of each other stream note its first waiting entry."""
        while entries := [entry for entry in entries if self._is_free(entry)]:
            try:
                self._store_or_quarantine(entries)
            except LockedElsewhere as held:
                self._set_aside([entry for entry in entries if _needs(entry, held)] or entries)
            except Exception as error:
                is_lock = is_of_lock(error)
                if is_lock and (len(entries) == 1 or time.monotonic() >= self._until):
                    self._set_aside(entries)
                elif len(entries) == 1 or (not is_lock and _is_passing(error)):
                    raise
                else:
                    self._store_free(entries[: len(entries) // 2])
                    self._store_free(entries[len(entries) // 2 :])
                    return
            else:
                return

    def _store_or_quarantine(self, entries: Sequence[StreamEntry]) -> None:
        try:
            self._store(entries)
        except Exception as error:
            if len(entries) > 1 or _is_passing(error):
                raise
            self._give_up(entries[0], error)

    def _is_free(self, entry: StreamEntry) -> bool:
        """Return whether no earlier entry of its stream waits."""
        first = self._first_held.get(entry.stream)
        return first is None or entry.place < first.place

    def _set_aside(self, entries: Sequence[StreamEntry]) -> None:
        for entry in entries:
            if self._is_free(entry):
                self._first_held[entry.stream] = entry

    def _held_stream(self, first: StreamEntry) -> HeldStream:
        before = first.nth - 1 if first.nth > 0 else gap_detection.UNCOUNTED
        return HeldStream(first.stream, self._stored[first.stream], before, ids.at(first.id) / 1e6)

    def report_losses(self, losses: Sequence[Loss]) -> list[Loss]:
        """Record losses in their conversations, else in the quarantine; the streams continue after them.

        Return those that must wait because the conversation is locked.
        """
        concerned = _concerned([loss.stream.name for loss in losses if _is_worth_telling(loss)])
        waiting: dict[str, Loss] = {}
        while free := [loss for loss in losses if loss.stream.name not in waiting]:
            try:
                self._store_losses(free, concerned, AT_ONCE)
                break
            except LockedElsewhere as held:
                those = [loss for loss in free if concerned.get(loss.stream.name) in held.keys]
                waiting |= {loss.stream.name: loss for loss in those or free}
        if (name := self._next_brief(waiting)) is not None:
            try:
                self._store_losses([waiting[name]], concerned, BRIEFLY)
                del waiting[name]
            except OperationalError as error:
                if not is_of_lock(error):
                    raise
        return list(waiting.values())

    def _store_losses(self, losses: Sequence[Loss], concerned: Mapping[str, str], wait: LockWait) -> None:
        reported = [loss for loss in losses if _is_worth_telling(loss)]
        named = [(loss, concerned.get(loss.stream.name)) for loss in reported]
        events = [_loss_event(loss, key) for loss, key in named if key is not None]
        unnamed = [loss for loss, key in named if key is None]
        at = database_now() if unnamed else 0
        rows = [_loss_row(loss, at) for loss in unnamed]
        moves: Moves = {loss.stream.name: loss.move_to for loss in losses}
        log.append(events, in_same_transaction=partial(self._move_positions, moves, rows), wait=wait)
        self._moved(moves)
        self.gaps += len(reported)

    def is_known(self, stream: Stream, entry: tuple[str, list[bytes]]) -> bool:
        """Return whether an entry of a stream is in the record, by its id."""
        event = parse_entry.parse_entry(stream.name, entry[0], 0, entry[1], found_at=0).event
        if event is None:
            return Quarantine.objects.filter(source=stream.name, entry=entry[0]).exists()
        if event.topic and Post.objects.filter(topic=event.topic, bus_id=event.bus_id).exists():
            return True
        if event.event_id is None or event.conversation is None:
            return False
        return Event.objects.filter(conversation__key=event.conversation, event_id=event.event_id).exists()

    def _store(self, entries: Sequence[StreamEntry]) -> None:
        pairs = [(entry, event) for entry in entries if (event := entry.event or _poison_event(entry)) is not None]
        rows = _poison_rows(entries)
        moves: Moves = {entry.stream: (entry.id, entry.nth) for entry in entries}
        refused: list[StreamEntry] = []

        def refuse(stored: Sequence[log.Stored]) -> None:
            clashing = [entry for (entry, _), at in zip(pairs, stored, strict=True) if at.clashes]
            refused[:] = [entry for entry in clashing if entry.event and _clashes(entry.event)]
            _refuse(refused)

        events = [event for _, event in pairs]
        move = partial(self._move_positions, moves, rows)
        log.append(events, in_same_transaction=move, on_clash=refuse, wait=self._wait)
        self._moved(moves)
        self.events += sum(entry.event is not None for entry in entries)
        self.quarantined += len(rows) + len(refused)

    def _give_up(self, entry: StreamEntry, error: Exception) -> None:
        """Quarantine what the database refuses; if it refuses even that, only the place and the reason."""
        logger.warning("entry %s of %s cannot be stored: %s", entry.id, entry.stream, error)
        first_line = (str(error).splitlines() or [""])[0]  # further lines repeat the row
        reason = f"the entry could not be stored: {type(error).__name__}: {first_line}"
        body = entry.event.body.encode("utf-8", "replace") if entry.event else b""
        poison = entry.poison or parse_entry.invalid_entry(entry.stream, reason, body)
        bare = poison._replace(
            reason=f"the entry could not be stored: {type(error).__name__}", raw=b"", conversation=None
        )
        for variant in (poison, bare):
            try:
                self._store([entry._replace(event=None, poison=variant)])
            except Exception as again:
                if variant is bare or _is_passing(again):
                    raise
            else:
                return

    def _move_positions(self, moves: Moves, rows: Sequence[Quarantine]) -> None:
        _change(_MOVE, [(name, self._stored[name], *to) for name, to in moves.items() if to is not None])
        _change(_FORGET, [(name, self._stored[name]) for name, to in moves.items() if to is None])
        _quarantine(rows)

    def _moved(self, moves: Moves) -> None:
        for name, to in moves.items():
            if to is None:
                self._stored.pop(name, None)
            else:
                self._stored[name] = to[0]


def _change(sql: str, flat: list[tuple[Any, ...]]) -> None:
    """Change positions in blocks, each from its last known value. Raises RecorderSuperseded if one is elsewhere."""
    with connection.cursor() as cursor:
        for block in blocks(flat, BLOCK):
            marks = ",".join([f"({','.join(['%s'] * len(block[0]))})"] * len(block))
            cursor.execute(sql.format(marks), [value for row in block for value in row])
            if cursor.rowcount != len(block):
                raise RecorderSuperseded(
                    f"another recorder moved {len(block) - cursor.rowcount} of {len(block)} positions"
                )


def _is_passing(error: Exception) -> bool:
    """Return whether an error is temporary; otherwise the database can never store this row."""
    if isinstance(error, RecorderSuperseded | LockedElsewhere):
        return True
    return is_unavailable(error) and not sqlstate(error).startswith(TOO_LARGE)


def _needs(entry: StreamEntry, held: LockedElsewhere) -> bool:
    event = entry.event or _poison_event(entry)
    return event is not None and event.conversation in held.keys


def _refuse(clashing: Sequence[StreamEntry]) -> None:
    """Quarantine entries whose id already belongs to other contents, in the transaction that passes them."""
    refused = [entry._replace(event=None, poison=_reused(entry)) for entry in clashing]
    log.append([event for entry in refused if (event := _poison_event(entry)) is not None])
    _quarantine(_poison_rows(refused))


def _quarantine(rows: Sequence[Quarantine]) -> None:
    Quarantine.objects.bulk_create(rows, batch_size=100, ignore_conflicts=True)


def _poison_event(entry: StreamEntry) -> NewEvent | None:
    poison = entry.poison
    if poison is None or poison.conversation is None:
        return None
    return _gap(
        poison.conversation,
        {"reason": "quarantined", "why": poison.reason, "topic": entry.stream, "entry": entry.id, "lost": 1}
        | {"size": poison.size, "since": ids.when(entry.id)},
    )


def _poison_rows(entries: Sequence[StreamEntry]) -> list[Quarantine]:
    poisons = [(entry, entry.poison) for entry in entries if entry.poison is not None]
    at = database_now() if poisons else 0
    return [
        Quarantine(
            source=entry.stream,
            entry=entry.id[:41],
            at=at,
            reason=poison.reason,
            raw=poison.raw,
            size=poison.size,
            digest=poison.digest,
            conversation=poison.conversation,
        )
        for entry, poison in poisons
    ]


def _is_worth_telling(loss: Loss) -> bool:
    return loss.after != ids.START or bool(loss.lost)


def _loss_event(loss: Loss, key: str) -> NewEvent:
    return _gap(
        key,
        {"reason": loss.reason, "why": gap_detection.WHY[loss.reason], "topic": loss.stream.name, "lost": loss.lost}
        | {"after": loss.after, "before": loss.before, "since": ids.when(loss.after), "until": ids.when(loss.before)},
    )


def _loss_row(loss: Loss, at: int) -> Quarantine:
    """Create the quarantine row of a loss that belongs to no conversation."""
    count = "an unknown number of" if loss.lost is None else f"{loss.lost:,}"
    return Quarantine(
        source=loss.stream.name,
        entry=(f">{loss.after}" if loss.after else f"<{loss.before}")[:41],
        at=at,
        reason=f"record.gap: {count} entries are lost: {gap_detection.WHY[loss.reason]}",
        raw=b"",
        size=0,
        digest=hashlib.sha256(b"").hexdigest(),
    )


def _gap(key: str, fields: dict[str, Any]) -> NewEvent:
    return log.from_internal(key, {"event": "record.gap", "id": new_id()} | fields, SYSTEM)


def _concerned(names: Sequence[str]) -> dict[str, str]:
    """Return the conversation to which a stream's loss belongs: `chat:X` may be an agent's, so it has to exist."""
    suffixes = {name: name.partition(":")[2] for name in names}
    streams = {name: suffix for name, suffix in suffixes.items() if name.startswith("stream:")}
    chats = {name: suffix for name, suffix in suffixes.items() if name.startswith("chat:")}
    existing: set[str] = set()
    for keys in blocks(sorted(chats.values()), BLOCK):
        matching = Conversation.objects.visible().filter(key__in=keys)
        existing.update(matching.values_list("key", flat=True))
    fit = {name: key for name, key in streams.items() if key.strip() and len(key) <= payload.MAX_KEY}
    return fit | {name: key for name, key in chats.items() if key in existing}


def _reused(entry: StreamEntry) -> parse_entry.InvalidEntry:
    assert entry.event is not None
    reason = "its id was already stored with a different payload"
    return parse_entry.invalid_entry(entry.stream, reason, entry.event.body.encode("utf-8", "replace"))


def _clashes(event: NewEvent) -> bool:
    """Return whether the event stored under this id has other contents; another spelling of the same JSON is equal."""
    if event.conversation is None:
        bodies = Post.objects.filter(topic=event.topic, bus_id=event.bus_id).values_list("body", flat=True)
        return not any(_same(body, event.body) for body in bodies)
    if event.event_id is None:
        return False
    stored = Event.objects.filter(conversation__key=event.conversation, event_id=event.event_id)
    return not any(
        erased or _same(body, event.body) or _is_echo(event, body)
        for body, erased in stored.values_list("body", "erased_by")
    )


def _is_echo(event: NewEvent, body: str) -> bool:
    """Return whether it is what the relay put on the stream of a stored message (`relay.Unsent.on_stream`)."""
    if event.kind != "user_message":
        return False
    message = payload.parse(body.encode("utf-8", "replace"))
    return message.kind == "message" and repeats_message(event.payload, message)


def _same(first: str | None, other: str) -> bool:
    if first == other:
        return True
    try:
        return first is not None and bool(msgspec.json.decode(first) == msgspec.json.decode(other))
    except (msgspec.DecodeError, RecursionError):
        return False
