"""Our own export (design 5): a header line, then a line per event. Hashes are checked, nothing else is changed.

| in the file | here |
|---|---|
| `conversation_id` of the header | the conversation's name, as it is |
| `body` | the payload, with the new conversation's id |
| `principal`, `at` (µs UTC), `erased_by` | `imported` in the payload; an `imported` that was there moves inside it |
| `event_id` | the event's id; `seq` gives the order |
| `at` | the pace; `created_at` when the body has none |
| `run`, `turn` | stay in the body; the event's own are null, since its principal is not ours |
| `salt`, `digest`, `hash` | checked; the import has its own |

A line whose digest or hash is wrong is left out (its place told), an erased one keeps its tombstone. Counters: as the
conversation had them, since every event is there again.
"""

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from conversations.errors import Invalid
from conversations.log import chain
from conversations.recordings.recording import Recording, Step, Times, decoded
from conversations.recordings.source import Source
from conversations.recordings.trouble import Trouble

NAME = "Switchboard export"
FORMAT = "switchboard/1"
HALF = re.compile("[\ud800-\udfff]")

T = TypeVar("T", bound=msgspec.Struct)


class Header(msgspec.Struct):
    """The first line of an exported conversation."""

    format: str
    conversation_id: str
    epoch: str
    head_seq: int
    head_hash: str
    forked_from: Any = None  # {conversation_id, seq}, told only


class Row(msgspec.Struct):
    """One event's line."""

    seq: int
    kind: str
    at: int
    principal: str
    body: str
    digest: str
    hash: str
    event_id: str | None = None
    run: str | None = None
    turn: int | None = None
    salt: str | None = None
    erased_by: str | None = None


def fits(sample: object) -> bool:
    """Tell whether a line is the header of this format."""
    return isinstance(sample, dict) and str(sample.get("format", "")).startswith("switchboard/")


def read(source: Source, trouble: Trouble) -> Iterator[Recording]:
    """Read one recording for each header. Steps must be read before the next recording is asked for."""
    lines = _Lines(source, trouble)
    while (header := lines.header()) is not None:
        yield Recording(header.conversation_id, "", lines.steps(header))
        lines.skip()


class _Lines:
    """The lines of the file, with one of look-ahead."""

    def __init__(self, source: Source, trouble: Trouble) -> None:
        self._objects, self._trouble = trouble.objects(source), trouble
        self._next = next(self._objects, None)

    def header(self) -> Header | None:
        while self._next is not None:
            place, value = self._next
            self._next = next(self._objects, None)
            try:
                return _header(value)
            except Invalid as error:
                self._trouble.found(place, error.message)
        return None

    def steps(self, header: Header) -> Iterator[Step]:
        history, times = _Chain(header, self._trouble), Times()
        while self._next is not None and not fits(self._next[1]):
            place, value = self._next
            self._next = next(self._objects, None)
            try:
                row = history.checked(value, place)
                yield _step(row, place, times)
            except Invalid as error:
                self._trouble.found(place, error.message)
        if wrong := history.wrong_end():
            self._trouble.found("the end", wrong, outcome="what is here was read")

    def skip(self) -> None:
        """Pass over what was not read of the conversation before."""
        while self._next is not None and not fits(self._next[1]):
            self._next = next(self._objects, None)


class _Chain:
    """Follows the hashes of one conversation."""

    def __init__(self, header: Header, trouble: Trouble) -> None:
        self._header, self._trouble = header, trouble
        self._seq, self._hash = 0, chain.seed(header.conversation_id)

    def checked(self, value: dict[str, Any], place: str) -> Row:
        """Answer the row of a line. Raises `Invalid` when it is none, or not what was exported."""
        row = _converted(value, Row)
        before, prev = self._seq, self._hash
        self._seq, self._hash = row.seq, row.hash
        if row.salt is not None and chain.digest(_unhexed(row.salt), row.body) != row.digest:
            raise Invalid(f"expected the digest of event {row.seq} to be that of its body")
        if row.salt is None and row.erased_by is None:
            raise Invalid(f"expected event {row.seq} to have a salt, or to say who erased it")
        key = self._header.conversation_id
        if row.seq != before + 1:
            self._trouble.found(place, f"expected event {before + 1}, got {row.seq}", outcome="kept, unchained")
        elif row.hash != chain.link(prev, key, row.seq, row.kind, row.at, row.principal, row.event_id, row.digest):
            raise Invalid(f"expected the hash of event {row.seq} to follow from the one before")
        return row

    def wrong_end(self) -> str:
        """Say what is wrong with where the lines ended; empty when nothing is."""
        head = self._header
        if (self._seq, self._hash) == (head.head_seq, head.head_hash) or (not head.head_seq and not self._seq):
            return ""
        return f"expected event {head.head_seq} with the head's hash, the last one here is {self._seq}"


def _header(value: dict[str, Any]) -> Header:
    header = _converted(value, Header)
    if header.format != FORMAT:
        raise Invalid(f"expected the format {FORMAT}, got {header.format[:40]!r}")
    return header


def _step(row: Row, place: str, times: Times) -> Step:
    payload = _body(row.body)
    moment = times.of(row.at / 1e6)
    imported = {"principal": row.principal, "at": row.at, "erased_by": row.erased_by, "before": payload.get("imported")}
    payload["imported"] = {name: value for name, value in imported.items() if value is not None}
    payload.setdefault("created_at", moment.at)
    return Step("stream", payload, moment.offset, place, row.event_id)


def _body(text: str) -> dict[str, Any]:
    """Read the body one level deep: what is inside stays as it was written."""
    try:
        return dict(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeError):
        value = decoded(text.encode("utf-8", "surrogatepass"))  # takes lone surrogates
    if not isinstance(value, dict):
        raise Invalid("expected a body that is a JSON object")
    return value


def _converted(value: dict[str, Any], kind: type[T]) -> T:
    expected = f"expected {'a header' if kind is Header else 'an event'} of an export"
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{expected}: {error}") from None
    for name in kind.__struct_fields__:
        if not _is_whole(getattr(converted, name)):
            raise Invalid(f"{expected}: {name} holds half of a surrogate pair, which no export does")
    return converted


def _is_whole(value: object) -> bool:
    """Tell whether UTF-8 can hold a text: hashes are made over its bytes."""
    return not isinstance(value, str) or HALF.search(value) is None


def _unhexed(salt: str) -> bytes:
    try:
        return bytes.fromhex(salt)
    except ValueError:
        raise Invalid("expected a salt in hex") from None
