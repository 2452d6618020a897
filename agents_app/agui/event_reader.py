"""A stream of server-sent events → the events of AG-UI, each by the package's own types, bounded. No Django."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import msgspec
from ag_ui.core import BaseEvent, Event, EventType
from pydantic import TypeAdapter, ValidationError

from agents_app.agui.http_stream import RemoteFailed
from conversations.core.errors import TooLarge
from conversations.events import payload

MAX_EVENT = payload.MAX_BYTES
KNOWN = frozenset(kind.value for kind in EventType)
NEEDED = ("RUN_", "TEXT_MESSAGE_", "TOOL_CALL_")  # what the rest of a run cannot be read without


@cache
def _types() -> TypeAdapter[Any]:
    return TypeAdapter(Event)


async def events_of(pieces: AsyncIterator[bytes], *, most: int) -> AsyncIterator[BaseEvent]:
    """Return the events of a stream of at most so many bytes; those that `event_of` has none of are passed
    over. Raises RemoteFailed for what is none."""
    async for data in _data_of(pieces, most):
        if (event := event_of(data)) is not None:
            yield event


def event_of(data: bytes) -> BaseEvent | None:
    """Read an event; None for one of an unknown type, and for one that is wrong and adds nothing to what is said or
    called. Raises RemoteFailed."""
    try:
        payload.check_depth(data)
        value: Any = msgspec.json.decode(data)
    except (TooLarge, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteFailed(f"it sent an event that is not JSON: {str(error)[:200]}") from None
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        raise RemoteFailed("it sent an event without a type")
    if kind not in KNOWN:
        return None
    try:
        event: BaseEvent = _types().validate_python(value)
    except (ValidationError, RecursionError) as error:
        if not kind.startswith(NEEDED):
            return None
        what = error.errors(include_input=False)[0] if isinstance(error, ValidationError) else {"msg": "too deep"}
        raise RemoteFailed(f"it sent an invalid {kind} event: {what['msg']}"[:400]) from None
    return event


async def _data_of(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """Return the data of each server-sent event; other fields and comments are passed over."""
    rest, lines, size, total = b"", list[bytes](), 0, 0
    async for piece in pieces:
        total += len(piece)
        if total > most:
            raise RemoteFailed(f"its answer is longer than {most:,} bytes")
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            text = line.removesuffix(b"\r")
            if not text and lines:
                yield b"\n".join(lines)
                lines, size = [], 0
            elif text.startswith(b"data:"):
                lines.append(text[5:].removeprefix(b" "))
                size += len(text)
        if size + len(rest) > MAX_EVENT:
            raise RemoteFailed(f"it sent an event of more than {MAX_EVENT:,} bytes")
