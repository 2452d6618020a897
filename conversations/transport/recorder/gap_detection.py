"""What was lost before it was read (law D): found from Redis's description of a stream and the read position.

`entries-added` counts every entry a stream ever got (Redis 7, Valkey). A stream read to its end must have been read as
often. Redis 6 does not count: there only what is certain is reported, and never a number.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from conversations.transport import entry_ids as ids
from conversations.transport.recorder.streams import Stream

MAX_ENTRIES = 1 << 62  # entries anybody counts; beyond, somebody set the count, and a column may not hold it
UNCOUNTED = -1  # of RedisPosition.entries_read: not known; counted again once the stream is read to its end

Reason = Literal["trimmed", "deleted", "went_back", "emptied", "perhaps_trimmed"]

WHY: dict[Reason, str] = {
    "trimmed": "they were trimmed or deleted from the stream before they were read",
    "deleted": "the stream was deleted; unread entries are lost",
    "emptied": "Redis lost its streams (flushed, or restarted without its data); unread entries are lost",
    "went_back": "Redis came back with an older state of the stream; unread entries may be lost",
    "perhaps_trimmed": "the stream was trimmed past the last entry read; entries may be lost, this Redis cannot tell",
}


class Info(NamedTuple):
    """The answer of XINFO STREAM. `added` is None before Redis 7, and if it makes no sense."""

    length: int
    last_id: str
    added: int | None
    first_id: str | None
    last_entry: tuple[str, list[bytes]] | None


class Loss(NamedTuple):
    """Entries of one stream that can no longer be read. `lost` is None if their number is unknown."""

    stream: Stream
    reason: Reason
    lost: int | None
    after: str | None  # the last entry read before; None if it is not known: what was read last may be later
    before: str | None  # the first one there is after, if any
    move_to: tuple[str, int] | None  # where reading goes on: entry id, entries counted; None: the stream is gone


def info_of(answer: list[Any]) -> Info:
    """Parse XINFO STREAM's flat answer."""
    fields = dict(zip(answer[::2], answer[1::2], strict=False))
    first, last = fields.get(b"first-entry"), fields.get(b"last-entry")
    added = int(fields.get(b"entries-added", UNCOUNTED))
    return Info(
        length=int(fields[b"length"]),
        last_id=fields[b"last-generated-id"].decode(),
        added=added if 0 <= added < MAX_ENTRIES else None,
        first_id=first[0].decode() if first else None,
        last_entry=(last[0].decode(), last[1]) if last else None,
    )


def base_of(info: Info) -> int:
    """Return how many entries of a stream are already gone at first contact, which count as no loss."""
    return UNCOUNTED if info.added is None else max(0, info.added - info.length)


def find_loss(stream: Stream, info: Info) -> Loss | None:
    """Return what a stream has lost before it was read; None if nothing is missing."""
    here, newest = ids.order(stream.last_id), ids.order(info.last_id)
    if newest < here:
        return Loss(stream, "went_back", None, stream.last_id, None, (ids.START, base_of(info)))
    if info.added is None:
        return _look_uncounted(stream, info)
    if stream.entries_read == UNCOUNTED:
        return None
    if info.added < stream.entries_read:
        after = stream.last_id if _is_beyond(info.first_id, stream.last_id) else None  # None: it was made again before
        return Loss(stream, "deleted", None, after, info.first_id, (stream.last_id, _recount(stream, info)))
    unread = info.added - stream.entries_read
    if newest == here:
        loss = _trimmed(stream, info, unread, stream.last_id)
        return loss._replace(after=None, before=stream.last_id) if unread else None
    if _is_beyond(info.first_id, stream.last_id) and unread > info.length:
        to = stream.last_id if info.first_id else info.last_id
        return _trimmed(stream, info, unread - info.length, to)
    return None


def recount(stream: Stream, info: Info) -> None:
    """Set the count of a stream that was read to its end without one."""
    if stream.entries_read == UNCOUNTED and info.added is not None and info.last_id == stream.last_id:
        stream.entries_read = info.added


def _look_uncounted(stream: Stream, info: Info) -> Loss | None:
    """Check a stream of Redis 6: the last entry we read is gone while later ones exist, or nothing exists."""
    is_new = stream.last_id == ids.START
    if info.first_id is None:
        is_gone = info.last_id not in (stream.last_id, ids.START)
        to = info.last_id
    else:
        is_gone = _is_beyond(info.first_id, stream.last_id) and ids.before(info.first_id) != stream.last_id
        to = ids.before(info.first_id)
    if is_new or not is_gone:
        return None
    return Loss(stream, "perhaps_trimmed", None, stream.last_id, info.first_id, (to, UNCOUNTED))


def _is_beyond(first_id: str | None, last_id: str) -> bool:
    return first_id is None or ids.order(first_id) > ids.order(last_id)


def _trimmed(stream: Stream, info: Info, count: int, to: str) -> Loss:
    return Loss(stream, "trimmed", count, stream.last_id, info.first_id, (to, stream.entries_read + count))


def _recount(stream: Stream, info: Info) -> int:
    """Return how many entries of a recreated stream are before our position, if that is known."""
    if info.last_id == stream.last_id:
        return info.added or 0
    return base_of(info) if _is_beyond(info.first_id, stream.last_id) else UNCOUNTED
