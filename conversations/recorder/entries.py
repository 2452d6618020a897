"""One Redis entry → an event of the record, or what is wrong with it. Called by `reading`; no query.

A payload is read as the HTTP door reads it (design 3.1): leniently, the body kept as the text that came; filed by the
conversation it names, else by its `stream:` topic.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from conversations import envelopes, log
from conversations.envelopes import MAX_KEY, Said
from conversations.errors import Invalid, SwitchboardError
from conversations.log.events import NewEvent
from conversations.principals import REDIS
from conversations.recorder import ids

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
        event = _event(stream, bus_id, payload)
    except SwitchboardError as error:
        return Entry(stream, entry_id, nth, None, poison(stream, error.message, payload, fields), size, place)
    if milliseconds * 1000 < found_at:
        event = event._replace(is_live=False)
    return Entry(stream, entry_id, nth, event, None, size, place)


def _event(topic: str, bus_id: bytes | None, payload: bytes | None) -> NewEvent:
    """Make the event. Raises what a door would."""
    envelopes.check_topic(topic)
    if payload is None:
        raise Invalid("expected the fields id and payload; there is no payload")
    said = envelopes.read(payload)
    event = log.of_payload(topic, _bus_id(bus_id), _text(payload), said, REDIS)
    envelopes.check_named(topic, event.conversation)
    return event


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"expected UTF-8: {error}") from None


def _bus_id(value: bytes | None) -> str | None:
    if not value:
        return None
    text = _text(value)
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
        with contextlib.suppress(SwitchboardError):
            said = envelopes.read(raw)
    prefix, _, suffix = stream.partition(":")
    keys = (said.conversation_id, suffix if prefix == "stream" else None)
    return next(
        (key for key in keys if key and key.strip() and len(key) <= MAX_KEY and envelopes.fit(key) == key), None
    )
