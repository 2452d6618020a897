"""One Redis entry → an event of the record (`arrivals`), or what is wrong with it. Called by `reading`; no query."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Sequence
from typing import NamedTuple

from conversations import arrivals, envelopes
from conversations import entry_ids as ids
from conversations.envelopes import MAX_KEY, Said
from conversations.errors import Invalid, SwitchboardError
from conversations.log.events import NewEvent

logger = logging.getLogger(__name__)

KEPT = 64 << 10  # bytes of what cannot be filed

Fields = Sequence[bytes]  # name, value, name, value …


class Poison(NamedTuple):
    """An entry that cannot be an event: its first 64 kB, and whose history should tell of it."""

    reason: str
    raw: bytes
    size: int
    digest: str
    conversation: str | None


class Entry(NamedTuple):
    """One entry of a stream, read. `nth` counts the entries ever added to the stream, this one included; `place` is
    where it comes in a round of several streams."""

    stream: str
    id: str
    nth: int
    event: NewEvent | None
    poison: Poison | None
    size: int
    place: tuple[int, int, str]


def read(stream: str, entry_id: str, nth: int, fields: Fields, *, found_at: int) -> Entry:
    """Read one entry; `found_at` is the stream's first contact, µs: what is older is history."""
    bus_id: bytes | None
    payload: bytes | None
    if len(fields) == 4 and fields[0] == b"id" and fields[2] == b"payload":  # as every publisher writes it
        bus_id, payload = fields[1], fields[3]
    else:
        found = dict(zip(fields[::2], fields[1::2], strict=False))
        bus_id, payload = found.get(b"id"), found.get(b"payload")
    size = len(payload or b"")
    milliseconds, sequence = ids.order(entry_id)
    place = milliseconds, sequence, stream
    try:
        if payload is None:
            raise Invalid("expected the fields id and payload; there is no payload")
        event = arrivals.event_of(stream, payload, _bus_id(bus_id), entry_id=entry_id, found_at=found_at)
    except SwitchboardError as error:
        return Entry(stream, entry_id, nth, None, poison(stream, error.message, payload, fields), size, place)
    except Exception as error:  # a mistake of ours with one entry costs that entry, not the streams behind it
        logger.exception("entry %s of %s cannot be read", entry_id, stream)
        reason = f"it could not be read: {type(error).__name__}: {error}"
        return Entry(stream, entry_id, nth, None, poison(stream, reason, payload, fields), size, place)
    return Entry(stream, entry_id, nth, event, None, size, place)


def _bus_id(value: bytes | None) -> str | None:
    if not value:
        return None
    text = arrivals.text_of(value)
    if len(text) > MAX_KEY or envelopes.fit(text) != text:
        raise Invalid(f"expected an id of at most {MAX_KEY} characters", field="id")
    return text


def poison(stream: str, reason: str, payload: bytes | None, fields: Fields = ()) -> Poison:
    """Describe what cannot be filed: the payload, or all fields where there is none."""
    raw = payload if payload is not None else b"\n".join(b": ".join(pair) for pair in zip(fields[::2], fields[1::2]))  # noqa: B905
    digest = hashlib.sha256(raw).hexdigest()
    return Poison(envelopes.fit(reason)[:2000], raw[:KEPT], len(raw), digest, _concerned(stream, raw))


def _concerned(stream: str, raw: bytes) -> str | None:
    """Answer the conversation it would have been of: named by it where that can be read, else by the stream."""
    said = Said()
    if len(raw) <= envelopes.MAX_BYTES:
        with contextlib.suppress(Exception):  # it is poison already, whatever it does to reading
            said = envelopes.read(raw)
    prefix, _, suffix = stream.partition(":")
    keys = (said.conversation_id, suffix if prefix == "stream" else None)
    return next(
        (key for key in keys if key and key.strip() and len(key) <= MAX_KEY and envelopes.fit(key) == key), None
    )
