"""A file for formats to read: line by line, or as one JSON document whose parts are parsed on demand."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from conversations.core.errors import Invalid, TooLarge
from conversations.import_export.recording import decoded, encoded, refuse_other_encoding

MAX_LINE = 64 << 20  # bytes: one conversation of a line-based file
MAX_DOCUMENT = 512 << 20  # bytes, unpacked: read whole, so bounded
LOOK = 20  # lines looked at to tell a format

GZIP = b"\x1f\x8b"
ZIP, SQLITE = b"PK\x03\x04", b"SQLite format 3\x00"  # the first bytes of archives (APPNOTE 4.3.7) and databases

Document = dict[str, msgspec.Raw] | list[msgspec.Raw]

_items = msgspec.json.Decoder(list[msgspec.Raw])
_documents: msgspec.json.Decoder[Document] = msgspec.json.Decoder(Document)


class FileLine(NamedTuple):
    """One line: its number from 1, and its bytes; None if it is longer than 64 MiB."""

    number: int
    text: bytes | None


class RecordingFile:
    """A recording's file. Compressed files are recognized by their first two bytes, not by their name (RFC 1952,
    2.3.1)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._document: Document | None = None

    @property
    def stem(self) -> str:
        """Return the name without its extensions, valid in addresses."""
        return fit_name(
            re.sub(r"\.(gz|json|jsonl|ndjson|eval|db|sqlite3?|ipynb)$", "", re.sub(r"\.gz$", "", self.path.name))
        )

    def begins_with(self, mark: bytes) -> bool:
        """Return whether the uncompressed file begins with these bytes."""
        with self._open() as file:
            return file.read(len(mark)) == mark

    def begins_with_database(self) -> bool:
        """Return whether it is a SQLite database."""
        return self.begins_with(SQLITE)

    @contextmanager
    def binary(self) -> Iterator[IO[bytes]]:
        """Open the file for a reader that seeks. Raises Invalid for a compressed one."""
        with self.path.open("rb") as plain:
            if plain.peek(2)[:2] == GZIP:
                raise Invalid("an archive or a database must not be compressed again: unpack it first")
            yield plain

    def lines(self) -> Iterator[FileLine]:
        """Yield the lines, without empty ones."""
        with self._open() as file:
            number = 0
            while text := file.readline(MAX_LINE + 1):
                number += 1
                is_long = len(text) > MAX_LINE
                while len(text) > MAX_LINE and not text.endswith(b"\n"):
                    text = file.readline(MAX_LINE + 1)
                if is_long or not text.isspace():
                    yield FileLine(number, None if is_long else _without_mark(text, number))

    def document(self) -> Document:
        """Read the whole file as one JSON object or list, its parts still raw. Raises Invalid or TooLarge."""
        if self._document is None:
            self._document = _document_of(self._whole())
        return self._document

    def is_document(self) -> bool:
        """Return whether it is one JSON document (and not lines of JSON)."""
        first = next(self.lines(), None)
        if first is None or first.text is None or not first.text.lstrip().startswith((b"{", b"[")):
            return False
        if first.text.lstrip().startswith(b"{") and self._has_more_lines() and _is_object(first.text):
            return False
        try:
            self.document()
        except Invalid:
            if any(_is_object(line.text) for _, line in zip(range(LOOK), self.lines(), strict=False)):
                return False
            raise
        return True

    def _has_more_lines(self) -> bool:
        return sum(1 for _ in zip(range(2), self.lines(), strict=False)) > 1

    def _whole(self) -> bytes:
        with self._open() as file:
            text = file.read(MAX_DOCUMENT + 1)
        if len(text) > MAX_DOCUMENT:
            raise TooLarge(f"a JSON document must be at most {MAX_DOCUMENT >> 20} MiB; use JSON lines (JSONL) instead")
        return _without_mark(text, 1)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with self.path.open("rb") as plain:
            is_packed = plain.peek(2)[:2] == GZIP
            if not is_packed:
                refuse_other_encoding(plain.peek(2))
                yield plain
                return
            try:
                with gzip.open(plain) as packed, io.BufferedReader(packed) as unpacked:
                    refuse_other_encoding(unpacked.peek(2))
                    yield unpacked
            except (EOFError, OSError, zlib.error) as error:
                raise Invalid(f"the compressed file is damaged: {error}") from None


def parts(raw: msgspec.Raw) -> list[msgspec.Raw]:
    """Split a raw JSON list into its raw items. Raises Invalid for anything else."""
    try:
        return _items.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(raw)  # takes lone surrogates, and says line and column of what is not JSON
    if not isinstance(value, list):
        raise Invalid(f"must be a JSON list; got {type(value).__name__}")
    return [msgspec.Raw(encoded(item)) for item in value]


def fit_name(text: str) -> str:
    """Return a text as a valid part of a conversation's id and address (§3.6): 1 to 99 characters."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")[:99] or "recording"


def _without_mark(text: bytes, number: int) -> bytes:
    return text.removeprefix(b"\xef\xbb\xbf") if number == 1 else text


def _is_object(text: bytes | None) -> bool:
    try:
        return text is not None and isinstance(decoded(text), dict)
    except Invalid:
        return False


def _document_of(text: bytes) -> Document:
    try:
        document = _documents.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(text)  # says line and column of what is not JSON
    else:
        return document
    if isinstance(value, dict):
        return {name: msgspec.Raw(encoded(part)) for name, part in value.items()}
    if isinstance(value, list):
        return [msgspec.Raw(encoded(part)) for part in value]
    raise Invalid(f"must be a JSON object or list; got {type(value).__name__}")
