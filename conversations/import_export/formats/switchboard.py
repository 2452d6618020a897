"""Our own export (§5): a header line, then a line per event. Hashes are checked, nothing else is changed.

| in the file | here |
|---|---|
| `conversation_id` of the header | the conversation's name, as it is |
| `body` | the payload, with the new conversation's id |
| `principal`, `at` (µs UTC), `erased_by` | `imported` in the payload; an `imported` that was there moves inside it |
| `event_id` | the event's id; `seq` gives the order |
| `at` | the pace; `created_at` when the body has none |
| `run`, `turn` | stay in the body; the event's own are null, since its principal is not ours |
| `salt`, `digest`, `hash` | checked; the import has its own |

The header of `switchboard/3` has a salted digest of the conversation's id, which is in the links in place of the id.
The lines of `switchboard/2` may begin with links of format 1, those of `switchboard/1` have no others. A line whose
digest or hash is wrong is left out (its place told). An erased one keeps its tombstone; where no later
`event.redacted` names it, that is reported. Counters: as the conversation had them, since every event is there again.
"""

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from conversations.core import principals
from conversations.core.errors import Invalid
from conversations.core.json_values import Converter
from conversations.events.log import hash_chain
from conversations.events.types.redaction import ID_ERASED, REDACTED, new_id_of, redactions_of
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import FileTimes, RecordedStep, Recording, decoded

NAME = "Switchboard export"
READS = ("lines",)
FORMAT = "switchboard/3"
WITHOUT_DIGEST = "switchboard/2"  # of a conversation whose id has no digest
FORMATS = {"switchboard/1": 1, WITHOUT_DIGEST: 2, FORMAT: 3}  # each with the newest format that its links may have
DIGEST = re.compile("[0-9a-f]{64}")
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
    key_salt: str | None = None
    key_digest: str = ""


class EventLine(msgspec.Struct):
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


_header_shape: Converter[Header] = Converter(Header)
_row_shape: Converter[EventLine] = Converter(EventLine)
_bodies = msgspec.json.Decoder(dict[str, msgspec.Raw])


def fits(sample: object) -> bool:
    """Return whether a line is the header of this format."""
    return isinstance(sample, dict) and str(sample.get("format", "")).startswith("switchboard/")


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording for each header. Steps must be read before the next recording is asked for."""
    lines = _Lines(source, report)
    while (header := lines.header()) is not None:
        yield Recording(header.conversation_id, "", lines.steps(header))
        lines.skip()


class _Lines:
    """The lines of the file, with a look-ahead of one."""

    def __init__(self, source: RecordingFile, report: ImportReport) -> None:
        self._objects, self._trouble = report.objects(source), report
        self._next = next(self._objects, None)

    def header(self) -> Header | None:
        while self._next is not None:
            location, value = self._next
            self._next = next(self._objects, None)
            with self._trouble.reporting(location):
                return _header(value)
        return None

    def steps(self, header: Header) -> Iterator[RecordedStep]:
        history, times = _Chain(header, self._trouble), FileTimes()
        while self._next is not None and not fits(self._next[1]):
            location, value = self._next
            self._next = next(self._objects, None)
            with self._trouble.reporting(location):
                row = history.checked(value, location)
                yield _step(row, location, times)
        if wrong := history.wrong_end():
            self._trouble.add_problem("the end", wrong, outcome="available events imported")

    def skip(self) -> None:
        """Skip what was not read of the previous conversation."""
        while self._next is not None and not fits(self._next[1]):
            self._next = next(self._objects, None)


class _Chain:
    """Verifies the hashes of one conversation."""

    def __init__(self, header: Header, report: ImportReport) -> None:
        self._header, self._trouble = header, report
        self._identity = hash_chain.identity_of(header.conversation_id, header.key_digest)
        self._seq, self._hash = 0, hash_chain.seed(self._identity)
        self._newest, self._oldest = FORMATS[header.format], 1
        self._unnamed: dict[int, str] = {}  # digests of tombstones, until an event names them
        self._new_ids: set[str] = set()  # that events name, where the id was erased

    def checked(self, value: dict[str, Any], location: str) -> EventLine:
        """Return the event of a line. Raises Invalid if it is none, or not as it was exported."""
        row = _converted(value, _row_shape, "an event")
        before, prev = self._seq, self._hash
        self._seq, self._hash = row.seq, row.hash
        if row.salt is not None and hash_chain.digest(_unhexed(row.salt), row.body) != row.digest:
            raise Invalid(f"digest of event {row.seq} must match its body")
        if row.salt is None and row.erased_by is None:
            raise Invalid(f"event {row.seq} must have a salt, or erased_by")
        if row.seq != before + 1:
            self._trouble.add_problem(
                location, f"must be event {before + 1}; got {row.seq}", outcome="imported without hash check"
            )
            self._note(row)
            return row
        is_tombstone = row.salt is None
        format_ = hash_chain.format_of(prev, self._identity, row, oldest=self._oldest, is_tombstone=is_tombstone)
        if not 0 < format_ <= self._newest:
            raise Invalid(f"hash of event {row.seq} must match its contents and the previous hash")
        self._oldest = format_
        self._note(row)
        return row

    def _note(self, row: EventLine) -> None:
        """Note a tombstone, or remove those that an event names."""
        if row.salt is None:
            self._unnamed[row.seq] = hash_chain.tombstone_digest(row.seq, row.erased_by, row.body)
        if row.kind == REDACTED and principals.is_people(row.principal):
            for redacted in redactions_of(row.body):
                if self._unnamed.get(redacted.seq) == redacted.digest:
                    del self._unnamed[redacted.seq]
        elif row.kind == ID_ERASED and principals.is_people(row.principal):
            self._new_ids.add(new_id_of(row.body))

    def wrong_end(self) -> str:
        """Return what is wrong with the end of the lines; empty if nothing is."""
        head = self._header
        salt = None if head.key_salt is None else _unhexed(head.key_salt)
        if fault := hash_chain.fault_of_key(head.conversation_id, salt, head.key_digest, self._new_ids):
            return fault
        if self._unnamed:
            return f"event {min(self._unnamed)} must have a salt, or an event.redacted that names what stands there"
        if (self._seq, self._hash) == (head.head_seq, head.head_hash) or (not head.head_seq and not self._seq):
            return ""
        return f"the last event must be {head.head_seq} with the head's hash; got {self._seq}"


def _header(value: dict[str, Any]) -> Header:
    header = _converted(value, _header_shape, "a header")
    if header.format not in FORMATS:
        raise Invalid(f"format must be {' or '.join(FORMATS)}; got {header.format[:40]!r}")
    has_digest = DIGEST.fullmatch(header.key_digest) is not None
    if has_digest != (header.format == FORMAT) or (not has_digest and (header.key_digest or header.key_salt)):
        raise Invalid(f"key_digest must be 64 hexadecimal digits in {FORMAT}, and absent in older formats")
    _unhexed(header.key_salt or "")
    return header


def _step(row: EventLine, location: str, times: FileTimes) -> RecordedStep:
    payload = _body(row.body)
    moment = times.of(row.at / 1e6)
    imported = {"principal": row.principal, "at": row.at, "erased_by": row.erased_by, "before": payload.get("imported")}
    payload["imported"] = {name: value for name, value in imported.items() if value is not None}
    payload.setdefault("created_at", moment.at)
    return RecordedStep("stream", payload, moment.offset, location, row.event_id, has_own_id=True)


def _body(text: str) -> dict[str, Any]:
    """Parse the body one level deep: the values stay as they were written."""
    try:
        return dict(_bodies.decode(text))
    except (msgspec.DecodeError, UnicodeError):
        value = decoded(text.encode("utf-8", "surrogatepass"))  # takes lone surrogates
    if not isinstance(value, dict):
        raise Invalid("body must be a JSON object")
    return value


def _converted(value: dict[str, Any], shape: Converter[T], what: str) -> T:
    expected = f"must be {what} of an export"
    try:
        converted = shape.convert(value)
    except msgspec.ValidationError as error:
        raise Invalid(f"{expected}: {error}") from None
    for name in converted.__struct_fields__:
        if not _is_whole(getattr(converted, name)):
            raise Invalid(f"{expected}: {name} contains a lone surrogate")
    return converted


def _is_whole(value: object) -> bool:
    """Return whether a text is valid UTF-8, over which hashes are computed."""
    return not isinstance(value, str) or HALF.search(value) is None


def _unhexed(salt: str) -> bytes:
    try:
        return bytes.fromhex(salt)
    except ValueError:
        raise Invalid("salt must be hexadecimal") from None
