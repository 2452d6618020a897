"""A span, independent of its encoding. A span's log records also become one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from conversations.core.errors import TooLarge

Attributes = dict[str, Any]  # texts, numbers, booleans, lists and objects of them

MAX_SPANS = 50_000  # spans or log records of one request
MAX_ATTRIBUTES = 50_000  # of one span, or members of one object: a dict of many takes long to grow
ID_BYTES = {"traceId": 16, "spanId": 8}


class SpanEvent(NamedTuple):
    """An event within a span, or a log record of it. `body` is a log record's."""

    name: str
    at: int  # ns since 1970
    attributes: Attributes
    body: Any = None  # any JSON


class SpanSource(msgspec.Struct, gc=False):
    """The sender of a span: its resource's attributes, and the instrumentation that made it."""

    resource: Attributes
    scope: str


class Span(msgspec.Struct, gc=False):
    """One span. Ids are lower-case hex; times are ns since 1970, 0 if not reported."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: Attributes
    source: SpanSource
    events: list[SpanEvent] = []
    error: str | None = None  # what went wrong, where its status says that something did
    is_pending: bool = False  # it has only begun
    is_log: bool = False  # made of log records: it tells no times and no end

    def text(self, *names: str) -> str:
        """Return the first non-empty one of these attributes, as text; empty without any."""
        attributes = self.attributes
        for name in names:
            if name in attributes and (value := attributes[name]) is not None and value != "":
                return value if isinstance(value, str) else str(value)
        return ""

    def number(self, *names: str) -> int:
        """Return the first of these attributes that is a count; 0 without any."""
        for name in names:
            value = self.attributes.get(name)
            if type(value) is int and 0 <= value <= 1 << 53:
                return value
        return 0


class Decoded(msgspec.Struct):
    """The contents of one request: its spans, how many items were invalid, and why the first was."""

    spans: list[Span] = []
    rejected: int = 0
    reason: str = ""

    def reject(self, reason: str) -> None:
        """Count one item as invalid."""
        self.rejected += 1
        self.reason = self.reason or reason


class GroupCount:
    """How many groups, by resource and by instrumentation, a request has: empty ones have no spans that limit them. Of
    each sort there may be as many as spans."""

    def __init__(self, most_spans: int = MAX_SPANS) -> None:
        self._count, self._most = 0, 2 * most_spans

    def add(self) -> None:
        """Count a group. Raises TooLarge above the limit."""
        self._count += 1
        if self._count > self._most:
            raise TooLarge(f"a request must have at most {self._most:,} groups of spans")


def is_id(text: str, kind: str) -> bool:
    """Return whether a text is an id of that kind in hex; all zeros is not."""
    return len(text) == 2 * ID_BYTES[kind] and text.strip("0") != ""


def error_of(message: str, events: Iterable[SpanEvent]) -> str:
    """Return the error message: the status's own, else that of the last exception within the span."""
    if message:
        return message
    for event in reversed(list(events)):
        if event.name == "exception":
            kind, text = (str(event.attributes.get(f"exception.{word}") or "") for word in ("type", "message"))
            return f"{kind}: {text}" if kind and text else kind or text
    return "error"


def of_records(spans: list[Span]) -> list[Span]:
    """Join the log records of each span, in the order of their times."""
    joined: dict[tuple[str, str], Span] = {}
    for span in spans:
        first = joined.setdefault((span.trace_id, span.span_id), span)
        if first is not span:
            first.events += span.events
            _add_missing(first.attributes, span.attributes)
    for span in joined.values():
        span.events.sort(key=lambda event: event.at)
        span.start = span.end = span.events[0].at
    return list(joined.values())


def _add_missing(attributes: Attributes, more: Attributes) -> None:
    """Add what is missing, in place: a span may have as many records as a request."""
    for name, value in more.items():
        if name not in attributes and len(attributes) < MAX_ATTRIBUTES:
            attributes[name] = value
