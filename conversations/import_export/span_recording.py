"""Spans in a file as recordings, read by the same conventions as at the OpenTelemetry endpoint.

A conversation is a session if the spans name one, else a trace. Events have the ids that live spans give them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from conversations.core.errors import Invalid, TooLarge
from conversations.core.micros import EPOCH
from conversations.events.payload import clean_text
from conversations.import_export.recording import HERE, RecordedStep, Recording, caption
from conversations.telemetry import intake
from conversations.telemetry.span import Attributes, Span
from conversations.telemetry.span_events import Step

MAX_SPANS = 500_000  # of one file: they are put in order in memory
MAX_ATTRIBUTES = 10_000  # of one span, flattened
MAX_DEPTH = 12
_UNITS = ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000), (1e20, 1))  # s, ms, µs, ns: below what, ns of each


def read(spans: Sequence[Span]) -> Iterator[Recording]:
    """Yield a recording per conversation, in the order in which they began."""
    by_conversation: dict[str, list[Step]] = {}
    for step in intake.of_spans(spans, intake.Memory()):
        by_conversation.setdefault(step.conversation, []).append(step)
    for conversation, steps in by_conversation.items():
        first = next((step.at for step in steps if step.at > 0), 0)
        recorded = [_recorded(step, first) for step in steps]
        yield Recording(conversation, _title_of(recorded), recorded)


def limited(spans: list[Span]) -> list[Span]:
    """Return the spans. Raises TooLarge for more than 500,000."""
    if len(spans) > MAX_SPANS:
        raise TooLarge(f"a file must have at most {MAX_SPANS:,} spans")
    return spans


def flattened(value: object) -> Attributes:
    """Return attributes by dotted names, however they are nested: `{"llm": {"model_name": …}}`, lists of objects by
    number. Raises TooLarge for more than 10,000 in one span."""
    attributes: Attributes = {}
    _flatten(value, "", attributes, 0)
    return attributes


def nanoseconds(value: object) -> int:
    """Return a time as ns since 1970: from ISO 8601 (UTC by default), a number of s, ms, µs or ns by its size, or a
    pair of seconds and ns; 0 for anything else."""
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int and 0 <= part < 1 << 40 for part in value):
        return int(value[0]) * 1_000_000_000 + int(value[1])
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        unit = next((unit for below, unit in _UNITS if 0 <= value < below), 0)
        return value * unit if isinstance(value, int) else int(value * unit) if unit else 0
    if not isinstance(value, str):
        return 0
    try:
        moment = datetime.fromisoformat(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        passed = moment - EPOCH
    except (ValueError, OverflowError):
        return 0
    return max(0, (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1_000)


def id_of(value: object, what: str) -> str:
    """Return the id of a span or trace without a leading `0x`. Raises Invalid for anything else."""
    text = value.removeprefix("0x").strip() if isinstance(value, str) else ""
    if not 1 <= len(text) <= 100:
        raise Invalid(f"must be a span with {what}, a string of 1 to 100 characters")
    return clean_text(text)


def _flatten(value: object, name: str, into: Attributes, depth: int) -> None:
    is_list_of_objects = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    if depth > MAX_DEPTH or not (isinstance(value, dict) or is_list_of_objects):
        if value is not None and name:
            into[name] = value
        if len(into) > MAX_ATTRIBUTES:
            raise TooLarge(f"a span must have at most {MAX_ATTRIBUTES:,} attributes")
        return
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]  # a list
    for part, inner in items:
        _flatten(inner, f"{name}.{part}" if name else str(part), into, depth + 1)


def _recorded(step: Step, first: int) -> RecordedStep:
    body = step.body
    if body.get("recipient") == f"{HERE}{step.conversation}":
        body = body | {"recipient": HERE}
    offset = (step.at - first) / 1e9 if step.at > 0 else None
    place = f"span {body.get('span_id')}"
    return RecordedStep("chat" if "type" in body else "stream", body, offset, place, has_own_id=True)


def _title_of(steps: Sequence[RecordedStep]) -> str:
    first = (s.payload["content"] for s in steps if s.payload.get("type") == "message" and s.payload.get("content"))
    return caption(next(first, ""))
