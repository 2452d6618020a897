"""Many messages in one request: `{"messages": […]}` or NDJSON, at most 1,000; each has an answer of its own.

Consecutive tokens of one turn become one event (design 3.1), joined with nobody else's.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from conversations import envelopes
from conversations.doors import messages
from conversations.errors import IdReused, SwitchboardError, TooLarge
from conversations.log.events import NewEvent, Stored
from conversations.sessions import Visitor

MOST = 1000  # messages of one request
PART_FIELDS = ("id", "created_at", "text", "index")  # in which the tokens of one segment may differ
MAX_SEGMENT = 16_384  # characters

_numbers = count(1)  # of segments, in this process
_START, _END = re.compile(rb'\s*\{\s*"messages"\s*:\s*\['), re.compile(rb"\s*\]\s*\}\s*")

Found = Sequence[bytes | msgspec.Raw]
Read = NewEvent | SwitchboardError


def lines_of(body: bytes) -> list[bytes]:
    """Cut NDJSON into its lines; empty ones count for nothing. Raises TooLarge over 1,000."""
    return check_many([line for line in body.split(b"\n") if line.strip()])


def check_many(found: list[Any]) -> list[Any]:
    """Raise TooLarge over 1,000 messages."""
    if len(found) > MOST:
        raise TooLarge(f"a request has at most {MOST:,} messages; got {len(found):,}", field="messages")
    return found


def cut(body: bytes) -> list[bytes] | None:
    """Cut `{"messages": […]}` into its messages without reading them, where one of them cannot be read at all (too
    deep, half a character). None where this is no such list of objects."""
    start = _START.match(body)
    if start is None:
        return None
    found: list[bytes] = []
    depth, begin, end = 0, start.end(), start.end()
    for match in envelopes.marks(body, start.end()):
        mark = match.group()
        if mark in (b"[", b"{"):
            if depth == 0:
                begin = match.start()
                if body[end:begin].strip() != (b"," if found else b""):
                    return None
            depth += 1
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                end = match.end()
                found.append(body[begin:end])
                if len(found) > MOST:
                    check_many(found)
            elif depth < 0:
                return check_many(found) if _END.fullmatch(body, end) else None
    return None


def read(found: Found, visitor: Visitor) -> tuple[list[Read], list[NewEvent]]:
    """Read every message, a bad one is its error in its place; answer with them the events to store, tokens marked
    with the segment they become part of."""
    items: list[Read] = []
    for line in found:
        try:
            items.append(messages.read(line, visitor))
        except SwitchboardError as error:
            items.append(error)
    return items, _joined([item for item in items if isinstance(item, NewEvent)])


def _joined(events: Sequence[NewEvent]) -> list[NewEvent]:
    joined: list[NewEvent] = []
    for run in _runs(events):
        segment = next(_numbers) if len(run) > 1 else 0
        joined += [_part(event, segment) for event in run] if segment else run
    return joined


def answer(items: Sequence[Read], stored: Sequence[Stored]) -> bytes:
    """Answer `{"items": […]}`, one for each message, in order."""
    places = iter(stored)
    answers: list[bytes] = []
    for item in items:
        if isinstance(item, SwitchboardError):
            answers.append(messages.error_of(item))
        elif (place := next(places)).clashes:
            answers.append(messages.error_of(reused()))
        else:
            answers.append(messages.answer_of(item, place.seq))
    return b'{"items":[' + b",".join(answers) + b"]}"


def reused() -> IdReused:
    """Say that this id was published before, with another payload."""
    return IdReused("this id was published before with another payload", field="id")


def _part(event: NewEvent, segment: int) -> NewEvent:
    topic = event.topic or f"stream:{event.conversation}"
    return event._replace(segment=segment, topic=topic)


def _runs(events: Sequence[NewEvent]) -> Iterator[list[NewEvent]]:
    """Group what may be one segment: tokens that follow each other and differ in text, index, id and time only."""
    run: list[NewEvent] = []
    facts: Any = None
    size, ids = 0, set[str | None]()
    for event in events:
        mine = _facts(event) if event.kind == "token" and event.conversation is not None else None
        size += len(event.said.text or "")
        if run and (mine is None or mine != facts or event.bus_id in ids or not _follows(run[-1], event, size)):
            yield run
            run, size, ids = [], len(event.said.text or ""), set()
        if mine is None:
            yield [event]
            continue
        run.append(event)
        ids.add(event.bus_id)
        facts = mine
    if run:
        yield run


def _follows(before: NewEvent, event: NewEvent, size: int) -> bool:
    """A turn's index goes up; a segment has a bound."""
    last, index = before.said.index, event.said.index
    return size <= MAX_SEGMENT and (last is None) == (index is None) and (last is None or index > last)  # type: ignore[operator]


def _facts(event: NewEvent) -> Any:
    """Answer what the tokens of one segment share: all but the part fields. None: this one stands alone."""
    if event.topic and not event.topic.startswith("stream:"):
        return None
    payload = msgspec.json.decode(event.body)
    if not isinstance(payload.get("text"), str):
        return None
    for name in PART_FIELDS:
        payload.pop(name, None)
    return event.conversation, event.topic, payload
