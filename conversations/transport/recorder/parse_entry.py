"""Turn one Redis entry into an event (`decode_entry`), or into what is wrong with it. Called by `read_streams`; no
query."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Sequence
from typing import NamedTuple

from conversations.core.errors import Invalid, SwitchboardError
from conversations.events.log.records import NewEvent
from conversations.events.payload import MAX_BYTES, MAX_KEY, ParsedPayload, clean_text, parse
from conversations.transport import decode_entry
from conversations.transport import entry_ids as ids

logger = logging.getLogger(__name__)

KEPT = 64 << 10  # bytes of what cannot be filed

Fields = Sequence[bytes]  # name, value, name, value …


class InvalidEntry(NamedTuple):
    """An entry that is not a valid event: its first 64 kB, and its conversation, if known."""

    reason: str
    raw: bytes
    size: int
    digest: str
    conversation: str | None


class StreamEntry(NamedTuple):
    """One parsed entry. `nth` is its number among all entries ever added to the stream; `place` is its position in a
    round of several streams."""

    stream: str
    id: str
    nth: int
    event: NewEvent | None
    poison: InvalidEntry | None
    place: tuple[int, int, str]


def parse_entry(stream: str, entry_id: str, nth: int, fields: Fields, *, found_at: int) -> StreamEntry:
    """Parse one entry; `found_at` is the first contact with the stream, µs UTC: older entries are history."""
    bus_id: bytes | None
    payload: bytes | None
    if len(fields) == 4 and fields[0] == b"id" and fields[2] == b"payload":  # as every publisher writes it
        bus_id, payload = fields[1], fields[3]
    else:
        by_name = dict(zip(fields[::2], fields[1::2], strict=False))
        bus_id, payload = by_name.get(b"id"), by_name.get(b"payload")
    milliseconds, sequence = ids.order(entry_id)
    event, reason = None, ""
    try:
        if payload is None:
            raise Invalid("the entry must have the fields id and payload; payload is missing")
        event = decode_entry.event_from_entry(stream, payload, _bus_id(bus_id), entry_id=entry_id, found_at=found_at)
    except SwitchboardError as error:
        reason = error.full_message
    except Exception as error:  # a bug of ours with one entry costs that entry, not the streams behind it
        logger.exception("entry %s of %s cannot be read", entry_id, stream)
        reason = f"the entry could not be read: {type(error).__name__}: {error}"
    poison = invalid_entry(stream, reason, payload, fields) if event is None else None
    return StreamEntry(stream, entry_id, nth, event, poison, (milliseconds, sequence, stream))


def _bus_id(value: bytes | None) -> str | None:
    if not value:
        return None
    text = decode_entry.text_of(value)
    if len(text) > MAX_KEY or clean_text(text) != text:
        raise Invalid(f"must be at most {MAX_KEY} characters", field="id")
    return text


def invalid_entry(stream: str, reason: str, payload: bytes | None, fields: Fields = ()) -> InvalidEntry:
    """Return an entry that cannot be stored: with the payload, or all fields if there is none."""
    raw = payload if payload is not None else b"\n".join(b": ".join(pair) for pair in zip(fields[::2], fields[1::2]))  # noqa: B905
    digest = hashlib.sha256(raw).hexdigest()
    return InvalidEntry(clean_text(reason)[:2000], raw[:KEPT], len(raw), digest, _concerned(stream, raw))


def _concerned(stream: str, raw: bytes) -> str | None:
    """Return the conversation of an invalid entry: the one it names, if that can be read, else that of the stream."""
    parsed = ParsedPayload()
    if len(raw) <= MAX_BYTES:
        with contextlib.suppress(Exception):  # it is poison already, whatever it does to reading
            parsed = parse(raw)
    prefix, _, suffix = stream.partition(":")
    keys = (parsed.conversation_id, suffix if prefix == "stream" else None)
    return next((key for key in keys if key and key.strip() and len(key) <= MAX_KEY and clean_text(key) == key), None)
