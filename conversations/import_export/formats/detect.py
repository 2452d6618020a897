"""Which format a file is of, told by its content."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import LOOK, Document, RecordingFile, parts
from conversations.import_export.formats import (
    claude_code,
    codex,
    openai_chat,
    pi,
    switchboard,
    tau2,
    tau_display,
    who_when,
)
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording, decoded


class Format(Protocol):
    """What a format's module offers."""

    NAME: str

    def fits(self, sample: object, /) -> bool:
        """Return whether a document, or one of the first lines, is of this format."""

    def read(self, source: RecordingFile, trouble: ImportReport, /) -> Iterator[Recording]:
        """Read one recording after another."""


OF_DOCUMENTS: tuple[Format, ...] = (tau2, who_when, openai_chat)
OF_LINES: tuple[Format, ...] = (switchboard, claude_code, codex, pi, tau_display, openai_chat)


def recordings(path: Path, trouble: ImportReport) -> Iterator[Recording]:
    """Read a file of any known format. Raises `Invalid` when it is none of them, `OSError` when it cannot be read."""
    source = RecordingFile(path)
    return format_of(source).read(source, trouble)


def format_of(source: RecordingFile) -> Format:
    """Return the format of a file, or raise `Invalid` naming those it could be."""
    is_document = source.is_document()
    samples = [_outline(source.document())] if is_document else _first_lines(source)
    for candidate in (*OF_DOCUMENTS, *OF_LINES) if is_document else OF_LINES:  # a single line is a document, too
        if any(candidate.fits(sample) for sample in samples):
            return candidate
    if not is_document and not samples:
        raise Invalid(f"{source.path.name} has no JSON object or list in its first {LOOK} lines")
    names = ", ".join(dict.fromkeys(f.NAME for f in (*OF_DOCUMENTS, *OF_LINES)))
    raise Invalid(f"{source.path.name} is JSON in an unknown format; supported formats: {names}")


def _first_lines(source: RecordingFile) -> list[object]:
    quiet = ImportReport(lambda _: None)
    return [value for _, value in quiet.objects(source, limit=LOOK, quiet=True)]


def _outline(document: Document) -> object:
    """Read the first items of a list, and of an object only what its parts are: they may be large."""
    if isinstance(document, list):
        return [decoded(raw) for raw in document[:LOOK]]
    return {name: _shape(raw) for name, raw in document.items()}


def _shape(raw: msgspec.Raw) -> object:
    if bytes(memoryview(raw)[:1]) == b"[":
        return parts(raw)[:1]
    return decoded(raw) if len(memoryview(raw)) < 1000 else None
