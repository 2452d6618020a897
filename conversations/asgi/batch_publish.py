"""Publish many messages in one request: `{"messages": […]}` or NDJSON, at most `MAX_MESSAGES`; each message has its own
result.

Consecutive tokens of one turn become one event (§3.1); they are never joined with those of another request.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from conversations.access.authentication import Caller
from conversations.asgi import published_message
from conversations.core import json_depth
from conversations.core.errors import IdReused, SwitchboardError, TooLarge
from conversations.events import payload
from conversations.events.log.records import NewEvent, Stored

MAX_MESSAGES = 1000  # messages of one request
BLANK = 64 << 10  # bytes that are looked at together for where a line begins
PART_FIELDS = ("id", "created_at", "text", "index")  # in which the tokens of one merge group may differ
MAX_MERGED = 16_384  # characters

_numbers = count(1)  # of merge groups, in this process
_BRACKET = re.compile(rb"[\[{\]}]")
_START, _END = re.compile(rb'\s*\{\s*"messages"\s*:\s*\['), re.compile(rb"\s*\]\s*\}\s*")

RawMessages = Sequence[bytes | msgspec.Raw | published_message.PublishedMessage]
ParsedMessage = NewEvent | SwitchboardError


def lines_of(body: bytes) -> list[bytes]:
    """Split NDJSON into lines, ignoring empty ones. Raises TooLarge above `MAX_MESSAGES`."""
    lines: list[bytes] = []
    at = 0
    while at < len(body):
        piece = body[at : at + BLANK]
        if not (line := piece.lstrip()):
            at += len(piece)
            continue
        begin = at + len(piece) - len(line)
        end = body.find(b"\n", begin)
        at = len(body) if end < 0 else end
        lines.append(body[begin:at])
        if len(lines) > MAX_MESSAGES:
            break
    return check_many(lines)


def check_many(messages: list[Any]) -> list[Any]:
    """Raise TooLarge above `MAX_MESSAGES`."""
    if len(messages) > MAX_MESSAGES:
        raise TooLarge(f"a request must have at most {MAX_MESSAGES:,} messages", field="messages")
    return messages


def split_undecodable(body: bytes) -> list[bytes] | None:
    """Split `{"messages": […]}` into its messages without decoding them, if one of them cannot be decoded (nested too
    deeply, a lone surrogate). None if it is not such a list of objects."""
    start = _START.match(body)
    if start is None:
        return None
    cutter = _Cutter(body, start.end())
    for piece in json_depth.pieces(body, start.end()):
        if (is_whole := cutter.take(piece)) is not None:
            return check_many(cutter.elements) if is_whole else None
    return None


class _Cutter:
    """Splits a list into its objects, piece by piece."""

    def __init__(self, body: bytes, start: int) -> None:
        self.elements: list[bytes] = []
        self._body = body
        self._depth, self._begin, self._end = 0, start, start  # of the object at hand; where the last one ended

    def take(self, piece: json_depth.Piece) -> bool | None:
        """Search one more piece for the ends of objects; return True at the end of the list, False if it is not a
        list."""
        levels, at = json_depth.levels(piece.outside, self._depth), 0
        while at < len(levels):
            if self._depth == 0:
                mark = _BRACKET.search(piece.outside, at)
                if mark is None:
                    return None
                at = mark.start()
                if mark.group() in b"]}":
                    return _END.fullmatch(self._body, self._end) is not None
                if not self._opens(piece.start + at):
                    return False
            try:
                at = levels.index(0, at) + 1
            except ValueError:
                break
            self._close(piece.start + at)
        self._depth = levels[-1] if levels else self._depth
        return None

    def _opens(self, begin: int) -> bool:
        """Start an object, if one may start here."""
        between = self._body[self._end : begin].strip()
        self._begin, self._depth = begin, 1
        return between == (b"," if self.elements else b"")

    def _close(self, end: int) -> None:
        self._depth, self._end = 0, end
        self.elements.append(self._body[self._begin : end])
        if len(self.elements) > MAX_MESSAGES:
            check_many(self.elements)


def parse_batch(raw_messages: RawMessages, caller: Caller) -> tuple[list[ParsedMessage], list[NewEvent]]:
    """Parse all messages; an invalid one is represented by its error. Return them with the events to store, where
    tokens are marked with the merge group that they belong to."""
    items: list[ParsedMessage] = []
    for line in raw_messages:
        try:
            items.append(published_message.parse_published(line, caller))
        except SwitchboardError as error:
            items.append(error)
    return items, _group_tokens([item for item in items if isinstance(item, NewEvent)])


def _group_tokens(events: Sequence[NewEvent]) -> list[NewEvent]:
    joined: list[NewEvent] = []
    for group in _merge_groups(events):
        merge_group = next(_numbers) if len(group) > 1 else 0
        joined += [_part(event, merge_group) for event in group] if merge_group else group
    return joined


def answer(items: Sequence[ParsedMessage], stored: Sequence[Stored]) -> bytes:
    """Return `{"items": […]}`, one for each message, in order."""
    places = iter(stored)
    answers: list[Any] = []  # Any: of objects and JSON
    for item in items:
        if isinstance(item, SwitchboardError):
            answers.append(published_message.error_of(item))
        elif (stored_event := next(places)).clashes:
            answers.append(published_message.error_of(reused()))
        else:
            answers.append(published_message.answer_of(item, stored_event.seq))
    return msgspec.json.encode({"items": answers})


def reused() -> IdReused:
    """Return the error for an id that was already published with another payload."""
    return IdReused("this id was already published with a different payload", field="id")


def _part(event: NewEvent, merge_group: int) -> NewEvent:
    topic = event.topic or f"stream:{event.conversation}"
    return event._replace(merge_group=merge_group, topic=topic)


def _merge_groups(events: Sequence[NewEvent]) -> Iterator[list[NewEvent]]:
    """Group tokens that can form one merge group: consecutive ones that differ only in text, index, id and time."""
    group: list[NewEvent] = []
    shared_fields: Any = None
    size, ids = 0, set[str | None]()
    for event in events:
        mine = _facts(event) if event.kind == "token" and event.conversation is not None else None
        size += len(event.payload.text or "")
        if group and (
            mine is None or mine != shared_fields or event.bus_id in ids or not _follows(group[-1], event, size)
        ):
            yield group
            group, size, ids = [], len(event.payload.text or ""), set()
        if mine is None:
            yield [event]
            continue
        group.append(event)
        ids.add(event.bus_id)
        shared_fields = mine
    if group:
        yield group


def _follows(before: NewEvent, event: NewEvent, size: int) -> bool:
    """Return whether a token continues a merge group: the index of a turn increases, and a group has a size limit."""
    last, index = before.payload.index, event.payload.index
    return size <= MAX_MERGED and (last is None) == (index is None) and (last is None or index > last)  # type: ignore[operator]


def _facts(event: NewEvent) -> Any:
    """Return what the tokens of one merge group have in common: everything except the part fields. None: this token is
    stored alone."""
    if event.topic and not event.topic.startswith("stream:"):
        return None
    fields = payload.decoded(event.body)
    if not isinstance(fields.get("text"), str):
        return None
    for name in PART_FIELDS:
        fields.pop(name, None)
    return event.conversation, event.topic, fields
