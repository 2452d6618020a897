"""What every format is parsed into: a `Recording` of `RecordedStep`s, and functions that make the payloads (§3.1)."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from conversations.core.errors import Invalid
from conversations.core.ids import new_id
from conversations.core.json_values import number_of, refuse_constant, text_of
from conversations.core.plain_text import short_title

NEWLINE = b"\n"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # which begin such a file; one of UTF-32 begins with the first
HERE = "chat:"  # a recipient that is the conversation itself, its key not yet known
SUMMARY = 500  # characters of `result_summary`; the whole result is in `output`

_FIRST_SECOND = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC).timestamp() + 24 * 3600
_CONSTANT = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)', re.DOTALL)  # beside texts, which may contain the word

Payload = Mapping[str, Any]  # any JSON


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One event to be stored. `topic` is the bus prefix (`chat` or `stream`), `offset` the seconds since the first
    step, or None."""

    topic: str
    payload: Payload
    offset: float | None = None
    place: str = ""  # where in the file, for reports
    bus_id: str | None = None  # kept from an export; else a new one is made
    has_own_id: bool = False  # the payload's id is what the source calls it; else an import derives one


@dataclass(frozen=True, slots=True)
class Recording:
    """One conversation of a file. `name` is its key in the source. Read `steps` before asking for the next
    recording."""

    name: str
    title: str
    steps: Iterable[RecordedStep] = field(repr=False)
    is_named_after_file: bool = False  # the source has no key of its own: another file may have the same name


class Moment(NamedTuple):
    """When something happened: seconds since the first moment, and as text for `created_at`. Both None if unknown."""

    offset: float | None = None
    at: str | None = None


class FileTimes:
    """Converts a file's times (ISO 8601, or seconds since 1970) to moments. Texts without a zone are UTC."""

    def __init__(self) -> None:
        self._first: float | None = None

    def of(self, value: object) -> Moment:
        """Return a value as a moment; an invalid one as unknown."""
        seconds = _seconds(value)
        if seconds is None:
            return Moment()
        if self._first is None:
            self._first = seconds
        return Moment(max(0.0, seconds - self._first), datetime.fromtimestamp(seconds, UTC).isoformat())


def message_step(
    sender: str, recipient: str, content: str, *, moment: Moment, location: str, **metadata: object
) -> RecordedStep:
    """Return a message envelope as a step. Metadata that is None is left out."""
    return _envelope("message", (sender, recipient, content), moment, location, metadata)


def control(
    sender: str, recipient: str, content: str, *, moment: Moment, location: str, **metadata: object
) -> RecordedStep:
    """Return a control envelope as a step."""
    return _envelope("control", (sender, recipient, content), moment, location, metadata)


def opened(title: str, *, moment: Moment) -> RecordedStep:
    """Return the step that gives a conversation its title."""
    return stream("conversation.opened", moment, "", title=title)


def stream(kind: str, moment: Moment, location: str, **fields: object) -> RecordedStep:
    """Return a stream event as a step. Fields that are None are left out."""
    payload = {"event": kind, "id": new_id(), "created_at": moment.at, **fields}
    return RecordedStep("stream", _without_none(payload), moment.offset, location)


def with_opening(recording: Recording) -> Iterator[RecordedStep]:
    """Yield the steps, after an opening with the title; a recording of ours has its own."""
    first = True
    for step in recording.steps:
        if first and recording.title:
            yield opened(recording.title, moment=Moment(step.offset, text_of(step.payload.get("created_at"))))
        first = False
        yield step


def addressed(step: RecordedStep, key: str) -> dict[str, Any]:
    """Return the payload as it is in the conversation `key`."""
    payload = {**step.payload, "conversation_id": key}
    if payload.get("recipient") == HERE:
        payload["recipient"] = f"{HERE}{key}"
    return payload


class DerivedIds:
    """Ids for events without one, derived from their contents: a file that is imported again, or has grown, gives the
    same ids. Repeated contents are separate events."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()

    def of(self, payload: Payload) -> str:
        """Return the id of the next event with this payload. A conversation is opened once, whatever its title."""
        is_opening = payload.get("event") == "conversation.opened"
        content = encoded({name: value for name, value in payload.items() if name != "id" and not is_opening})
        digest = hashlib.sha256(content).hexdigest()[:32]
        self._uses[digest] += 1
        count = self._uses[digest]
        return digest if count == 1 else hashlib.sha256(f"{digest} {count}".encode()).hexdigest()[:32]


def encoded(value: object) -> bytes:
    """Return compact JSON; raw parts stay as they are. Lone surrogates, which UTF-8 cannot hold, are escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def decoded(raw: bytes | msgspec.Raw) -> Any:  # any JSON
    """Parse JSON in UTF-8, strictly: it has no NaN and no infinities. NULs in front, which a crash may leave, are left
    out. Raises Invalid with the position of the error."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # lone surrogates are fine for us, and the standard library says line and column of what is not
    refuse_other_encoding(raw)
    try:
        text = bytes(raw).lstrip(b"\0").decode("utf-8-sig")
        return json.loads(text, parse_constant=refuse_constant, parse_float=number_of)
    except RecursionError:
        raise Invalid("must be JSON with fewer levels of nesting") from None
    except ValueError as error:
        place = "" if isinstance(error, json.JSONDecodeError) else _place_of_constant(bytes(raw))
        raise Invalid(f"must be JSON: {error}{place}") from None


def refuse_other_encoding(raw: bytes | msgspec.Raw) -> None:
    """Raise Invalid for text with the mark of UTF-16 or UTF-32 in front."""
    if bytes(memoryview(raw)[:2]) in UTF_16_MARKS:
        raise Invalid("must be UTF-8; it is UTF-16 or UTF-32")


def _place_of_constant(text: bytes) -> str:
    """Return where the first NaN or infinity stands, as the standard library says it of other errors; empty: there is
    none."""
    at = next((match.start(1) for match in _CONSTANT.finditer(text) if match[1]), None)
    if at is None:
        return ""
    before = text[:at]
    return f": line {before.count(NEWLINE) + 1} column {at - before.rfind(NEWLINE)}"


def caption(text: object) -> str:
    """Shorten a text to a title."""
    return short_title(str(text or ""))


def _envelope(
    kind: str, message: tuple[str, str, str], moment: Moment, location: str, metadata: Mapping[str, object]
) -> RecordedStep:
    sender, recipient, content = message
    payload = {
        "id": new_id(),
        "type": kind,
        "sender": sender,
        "recipient": recipient,
        "content": content,
        "metadata": _without_none(metadata),
        "created_at": moment.at,
    }
    return RecordedStep("chat", _without_none(payload), moment.offset, location)


def _without_none(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _seconds(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if 0 <= value < 1e11 else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds if _FIRST_SECOND <= seconds < _END_OF_TIME else None  # in UTC, where another year may have begun
