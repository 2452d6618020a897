"""Bad lines of an import: reported with their place and left out, or, if strict, the end of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.recording import decoded


class ImportReport:
    """Collects what was wrong with a file. `write_line` is called with one line for each of the first 50."""

    SHOWN = 50

    def __init__(self, write_line: Callable[[str], None], *, is_strict: bool = False) -> None:
        self.count = 0
        self._write_line, self._is_strict = write_line, is_strict

    def add_problem(self, location: str, expected: str, *, outcome: str = "skipped") -> None:
        """Report one bad place. Raises `ImportRefused` when strict."""
        self.count += 1
        if self._is_strict:
            raise ImportRefused(f"{location}: {expected}")
        if self.count <= self.SHOWN:
            self._write_line(f"{location}: {expected}; {outcome}")
        elif self.count == self.SHOWN + 1:
            self._write_line(f"more than {self.SHOWN} problems; further ones are skipped without a message")

    @contextmanager
    def reporting(self, location: str) -> Iterator[None]:
        """Report what is wrong with this place, and leave out the rest of what is done inside."""
        try:
            yield
        except Invalid as error:
            self.add_problem(location, error.message)

    def objects(
        self, source: RecordingFile, *, limit: int = 0, quiet: bool = False
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Read a JSON object of each line (of the first `limit` lines), with its place."""
        for count, line in enumerate(source.lines()):
            if limit and count >= limit:
                return
            location = f"line {line.number}"
            try:
                yield location, _object(line.text)
            except Invalid as error:
                if not quiet:
                    self.add_problem(location, error.message)

    def values(self, source: RecordingFile, *, lists: Sequence[str] = ()) -> Iterator[tuple[str, object]]:
        """Read the object of each line, or each item of a document that is a list or has one under the first of these
        names that it has, else the document itself; each with its place."""
        if not source.is_document():
            yield from self.objects(source)
            return
        document = source.document()
        if isinstance(document, list):
            yield from ((f"[{number}]", decoded(raw)) for number, raw in enumerate(document))
            return
        name = next((name for name in lists if name in document), "")
        items = decoded(document[name]) if name else None
        if isinstance(items, list):
            yield from ((f"{name}[{number}]", item) for number, item in enumerate(items))
        else:
            yield "the document", {field: decoded(raw) for field, raw in document.items()}


class ImportRefused(Invalid):
    """A file that is not taken, for its first bad place."""


def _object(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise Invalid("must be at most 64 MiB")
    value = decoded(text)
    if not isinstance(value, dict):
        raise Invalid(f"must be a JSON object; got {type(value).__name__}")
    return value
