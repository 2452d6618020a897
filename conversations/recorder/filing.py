"""Rounds of entries → the record: events, quarantine and read positions in one transaction (law C). In one thread.

The position is the fence: it moves only from where this recorder saw it last. Where it is somewhere else another
recorder has won, everything rolls back, and this one is told by `Superseded`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from django.db import InterfaceError, OperationalError, connection

from conversations import entry_ids as ids
from conversations import log
from conversations.ids import new_id
from conversations.log.events import NewEvent
from conversations.models import Conversation, Event, Post, Quarantine, RedisPosition
from conversations.nodes import database_time
from conversations.principals import SYSTEM
from conversations.recorder import entries, gaps
from conversations.recorder.entries import Entry
from conversations.recorder.gaps import Loss
from conversations.recorder.streams import Stream
from conversations.threads import sqlstate

logger = logging.getLogger(__name__)

BLOCK = 500  # rows a statement
Moves = dict[str, tuple[str, int] | None]  # stream → entry id and count; None: the position goes

# Not WITH … UPDATE: of such a statement sqlite3 tells no row count.
_MOVE = """UPDATE conversations_redisposition SET last_id=v.column3,entries_read=CAST(v.column4 AS bigint)
FROM (VALUES {}) AS v WHERE conversations_redisposition.stream=v.column1
AND conversations_redisposition.last_id=v.column2"""


_FORGET = "DELETE FROM conversations_redisposition WHERE (stream,last_id) IN (VALUES {})"
TOO_LARGE = "54"  # PostgreSQL's class for a value that no index can take: the entry's fault, not the database's


class Superseded(Exception):
    """Another recorder moved a position: it is the active one now."""


class Filing:
    """The database's side of a recorder. Every method runs in the recorder's one database thread."""

    def __init__(self) -> None:
        self.events = self.gaps = self.quarantined = 0
        self._stored: dict[str, str] = {}

    def positions(self) -> dict[str, RedisPosition]:
        """Read how far every stream was read; from here on they are this recorder's to move."""
        found = {position.stream: position for position in RedisPosition.objects.all()}
        self._stored = {name: position.last_id for name, position in found.items()}
        return found

    def follow(self, streams: Sequence[Stream]) -> None:
        """Note streams that were never seen before. Raises Superseded when somebody else just did."""
        rows = [
            RedisPosition(stream=s.name, last_id=s.last_id, entries_read=s.entries_read, found_at=s.found_at)
            for s in streams
        ]
        with log.writing():
            names = [row.stream for row in rows]
            for at in range(0, len(names), BLOCK):
                if RedisPosition.objects.filter(stream__in=names[at : at + BLOCK]).exists():
                    raise Superseded("another recorder found these streams first")
            RedisPosition.objects.bulk_create(rows, batch_size=BLOCK)
        self._stored |= {s.name: s.last_id for s in streams}

    def store(self, some: Sequence[Entry]) -> None:
        """Store a round. What cannot be stored costs itself alone: the round is halved until it stands by itself."""
        try:
            self._store(some)
        except Exception as error:
            if isinstance(error, Superseded) or _is_passing(error):
                raise
            if len(some) == 1:
                self._give_up(some[0], error)
                return
            self.store(some[: len(some) // 2])
            self.store(some[len(some) // 2 :])

    def tell(self, losses: Sequence[Loss]) -> None:
        """Tell of losses in the conversations concerned, else in the quarantine; their streams go on behind them."""
        told = [loss for loss in losses if loss.after != ids.START or loss.lost]
        concerned = _concerned([loss.stream.name for loss in told])
        named = [(loss, concerned.get(loss.stream.name)) for loss in told]
        events = [_loss_event(loss, key) for loss, key in named if key is not None]
        unnamed = [loss for loss, key in named if key is None]
        at = database_time() if unnamed else 0
        rows = [_loss_row(loss, at) for loss in unnamed]
        moves: Moves = {loss.stream.name: loss.move_to for loss in losses}
        log.append(events, riding=partial(self._ride, moves, rows))
        self._moved(moves)
        self.gaps += len(told)

    def is_known(self, stream: Stream, entry: tuple[str, list[bytes]]) -> bool:
        """Tell whether an entry of a stream is in the record, by its id."""
        event = entries.read(stream.name, entry[0], 0, entry[1], found_at=0).event
        if event is None:
            return Quarantine.objects.filter(source=stream.name, entry=entry[0]).exists()
        if event.topic and Post.objects.filter(topic=event.topic, bus_id=event.bus_id).exists():
            return True
        if event.event_id is None or event.conversation is None:
            return False
        return Event.objects.filter(conversation__key=event.conversation, event_id=event.event_id).exists()

    def _store(self, some: Sequence[Entry]) -> None:
        told = [(entry, event) for entry in some if (event := entry.event or _poison_event(entry)) is not None]
        rows = _poison_rows(some)
        moves: Moves = {entry.stream: (entry.id, entry.nth) for entry in some}
        refused: list[Entry] = []

        def refuse(stored: Sequence[log.Stored]) -> None:
            clashing = [entry for (entry, _), at in zip(told, stored, strict=True) if at.clashes]
            refused[:] = [entry for entry in clashing if entry.event and _clashes(entry.event)]
            _refuse(refused)

        log.append([event for _, event in told], riding=partial(self._ride, moves, rows), on_clash=refuse)
        self._moved(moves)
        self.events += sum(entry.event is not None for entry in some)
        self.quarantined += len(rows) + len(refused)

    def _give_up(self, entry: Entry, error: Exception) -> None:
        """Quarantine what the database refuses; where it refuses even that, only where and why."""
        logger.warning("entry %s of %s cannot be stored: %s", entry.id, entry.stream, error)
        said = (str(error).splitlines() or [""])[0]  # further lines repeat the row
        reason = f"it could not be stored: {type(error).__name__}: {said}"
        body = entry.event.body.encode("utf-8", "replace") if entry.event else b""
        poison = entry.poison or entries.poison(entry.stream, reason, body)
        bare = poison._replace(reason=f"it could not be stored: {type(error).__name__}", raw=b"", conversation=None)
        for kept in (poison, bare):
            try:
                self._store([entry._replace(event=None, poison=kept)])
            except Exception as again:
                if kept is bare or isinstance(again, Superseded) or _is_passing(again):
                    raise
            else:
                return

    def _ride(self, moves: Moves, rows: Sequence[Quarantine]) -> None:
        _change(_MOVE, [(name, self._stored[name], *to) for name, to in moves.items() if to is not None])
        _change(_FORGET, [(name, self._stored[name]) for name, to in moves.items() if to is None])
        _quarantine(rows)

    def _moved(self, moves: Moves) -> None:
        for name, to in moves.items():
            if to is None:
                self._stored.pop(name, None)
            else:
                self._stored[name] = to[0]


def _change(sql: str, flat: Sequence[tuple[Any, ...]]) -> None:
    """Change positions in blocks, each from where it was seen last. Raises Superseded when one is elsewhere."""
    with connection.cursor() as cursor:
        for at in range(0, len(flat), BLOCK):
            some = flat[at : at + BLOCK]
            marks = ",".join([f"({','.join(['%s'] * len(some[0]))})"] * len(some))
            cursor.execute(sql.format(marks), [value for row in some for value in row])
            if cursor.rowcount != len(some):
                raise Superseded(f"another recorder moved {len(some) - cursor.rowcount} of {len(some)} positions")


def _is_passing(error: Exception) -> bool:
    """Tell whether the database as a whole cannot do it now; else it is this row that it can never take."""
    return isinstance(error, OperationalError | InterfaceError) and not sqlstate(error).startswith(TOO_LARGE)


def _refuse(clashing: Sequence[Entry]) -> None:
    """Quarantine entries whose id stands for other words already; within the transaction that passes them by."""
    refused = [entry._replace(event=None, poison=_reused(entry)) for entry in clashing]
    log.append([event for entry in refused if (event := _poison_event(entry)) is not None])
    _quarantine(_poison_rows(refused))


def _quarantine(rows: Sequence[Quarantine]) -> None:
    Quarantine.objects.bulk_create(rows, batch_size=100, ignore_conflicts=True)


def _poison_event(entry: Entry) -> NewEvent | None:
    poison = entry.poison
    if poison is None or poison.conversation is None:
        return None
    return _gap(
        poison.conversation,
        {"reason": "quarantined", "why": poison.reason, "topic": entry.stream, "entry": entry.id, "lost": 1}
        | {"size": poison.size, "since": ids.when(entry.id)},
    )


def _poison_rows(some: Sequence[Entry]) -> list[Quarantine]:
    poisons = [(entry, entry.poison) for entry in some if entry.poison is not None]
    at = database_time() if poisons else 0
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


def _loss_event(loss: Loss, key: str) -> NewEvent:
    return _gap(
        key,
        {"reason": loss.reason, "why": gaps.WHY[loss.reason], "topic": loss.stream.name, "lost": loss.lost}
        | {"after": loss.after, "before": loss.before, "since": ids.when(loss.after), "until": ids.when(loss.before)},
    )


def _loss_row(loss: Loss, at: int) -> Quarantine:
    """Tell of a loss nobody's history can tell: on the page where people look after such things."""
    count = "an unknown number of" if loss.lost is None else f"{loss.lost:,}"
    return Quarantine(
        source=loss.stream.name,
        entry=f">{loss.after}"[:41],
        at=at,
        reason=f"record.gap: {count} entries are lost: {gaps.WHY[loss.reason]}",
        raw=b"",
        size=0,
        digest=hashlib.sha256(b"").hexdigest(),
    )


def _gap(key: str, facts: dict[str, Any]) -> NewEvent:
    return log.of_ours(key, {"event": "record.gap", "id": new_id()} | facts, SYSTEM)


def _concerned(names: Sequence[str]) -> dict[str, str]:
    """Answer whose history a stream's loss belongs to: `chat:X` may be an agent's, so that one has to exist."""
    suffixes = {name: name.partition(":")[2] for name in names}
    streams = {name: suffix for name, suffix in suffixes.items() if name.startswith("stream:")}
    chats = {name: suffix for name, suffix in suffixes.items() if name.startswith("chat:")}
    known: set[str] = set()
    for at in range(0, len(keys := sorted(chats.values())), BLOCK):
        found = Conversation.objects.visible().filter(key__in=keys[at : at + BLOCK])
        known.update(found.values_list("key", flat=True))
    fit = {name: key for name, key in streams.items() if len(key.strip()) >= 1 and len(key) <= 200}
    return fit | {name: key for name, key in chats.items() if key in known}


def _reused(entry: Entry) -> entries.Poison:
    assert entry.event is not None
    reason = "its id was stored before with another payload"
    return entries.poison(entry.stream, reason, entry.event.body.encode("utf-8", "replace"))


def _clashes(event: NewEvent) -> bool:
    """Tell whether what is stored under this event's id says something else; another spelling of it is the same."""
    if event.conversation is None:
        bodies = Post.objects.filter(topic=event.topic, bus_id=event.bus_id).values_list("body", flat=True)
        return not any(_same(body, event.body) for body in bodies)
    if event.event_id is None:
        return False
    found = Event.objects.filter(conversation__key=event.conversation, event_id=event.event_id)
    return not any(erased or _same(body, event.body) for body, erased in found.values_list("body", "erased_by"))


def _same(one: str | None, other: str) -> bool:
    if one == other:
        return True
    try:
        return one is not None and bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, RecursionError):
        return False
