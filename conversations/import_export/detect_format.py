"""Recognize a file's format by its content. The formats are the modules of `formats/`."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

import msgspec

from conversations.core.errors import Invalid
from conversations.import_export import formats
from conversations.import_export.archive import open_archive
from conversations.import_export.database import open_database
from conversations.import_export.file_reader import LOOK, SQLITE, ZIP, Document, RecordingFile, parts
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording, decoded

Shape = Literal["document", "lines", "archive", "database"]


class Format(Protocol):
    """What a format's module offers, or each of its `SESSIONS`. `fits` is given, by shape:

    | shape | sample |
    |---|---|
    | document | its object, each list cut to its first item (still raw), what is long left out (None); or the first \
20 items of its list |
    | lines | each object of the first 20 lines |
    | archive | the names of its entries (`list[str]`) |
    | database | the columns of its tables (`dict[str, tuple[str, …]]`) |
    """

    NAME: str
    READS: tuple[Shape, ...]

    def fits(self, sample: object, /) -> bool:
        """Return whether a file has this format, by a sample of it."""

    def read(self, source: RecordingFile, report: ImportReport, /) -> Iterator[Recording]:
        """Read one recording after another."""


def _formats() -> tuple[Format, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    modules = [import_module(f"{formats.__name__}.{name}") for name in names]
    several = [each for module in modules for each in getattr(module, "SESSIONS", (module,))]
    return cast(tuple[Format, ...], tuple(sorted(several, key=lambda each: hasattr(each, "IS_GENERAL"))))


FORMATS = _formats()
NAMES = tuple(sorted((each.NAME for each in FORMATS), key=str.lower))


def recordings(path: Path, report: ImportReport) -> Iterator[Recording]:
    """Yield the recordings of a file in any known format. Raises Invalid if it has none, OSError if it cannot be
    read."""
    source = RecordingFile(path)
    return format_of(source).read(source, report)


def format_of(source: RecordingFile) -> Format:
    """Return the format of a file. Raises Invalid that lists the possible ones."""
    samples = _samples(source)
    for shape, values in samples:
        for candidate in FORMATS:
            if shape in candidate.READS and any(candidate.fits(value) for value in values):
                return candidate
    kind = "JSON" if samples[0][0] in ("document", "lines") else f"{samples[0][0]} of content"
    raise Invalid(f"the file {source.path.name} is {kind} in an unknown format; supported formats: {', '.join(NAMES)}")


def _samples(source: RecordingFile) -> list[tuple[Shape, list[object]]]:
    """Return the samples for the formats, by the shapes to try; a single line is also a document."""
    if source.begins_with(ZIP):
        with open_archive(source) as archive:
            return [("archive", [archive.names])]
    if source.begins_with(SQLITE):
        with open_database(source) as database:
            return [("database", [database.tables()])]
    if source.is_document():
        outline = _outline(source.document())
        return [("document", [outline]), ("lines", [outline])]
    lines = _first_lines(source)
    if not lines:
        raise Invalid(f"the file {source.path.name} has no JSON object or list in its first {LOOK} lines")
    return [("lines", lines)]


def _first_lines(source: RecordingFile) -> list[object]:
    quiet = ImportReport(lambda _: None)
    return [value for _, value in quiet.objects(source, limit=LOOK, quiet=True)]


def _outline(document: Document) -> object:
    """Return the first items of a list, and only the outline of an object: its parts may be large."""
    if isinstance(document, list):
        return [decoded(raw) for raw in document[:LOOK]]
    return {name: _shape(raw) for name, raw in document.items()}


def _shape(raw: msgspec.Raw) -> object:
    if bytes(memoryview(raw)[:1]) == b"[":
        return parts(raw)[:1]
    return decoded(raw) if len(memoryview(raw)) < 1000 else None
