"""Bad lines: told with their place and left out, or, when strict, the end of it."""

from collections.abc import Callable, Iterator
from typing import Any

from conversations.errors import Invalid
from conversations.recordings.recording import decoded
from conversations.recordings.source import Source


class Trouble:
    """Collects what was wrong with a file. `tell` gets one line for each of the first 50."""

    SHOWN = 50

    def __init__(self, tell: Callable[[str], None], *, is_strict: bool = False) -> None:
        self.count = 0
        self._tell, self._is_strict = tell, is_strict

    def found(self, place: str, expected: str, *, outcome: str = "left out") -> None:
        """Report one bad place. Raises `Refused` when strict."""
        self.count += 1
        if self._is_strict:
            raise Refused(f"{place}: {expected}")
        if self.count <= self.SHOWN:
            self._tell(f"{place}: {expected}; {outcome}")
        elif self.count == self.SHOWN + 1:
            self._tell(f"more than {self.SHOWN} bad places; the rest is left out without a word each")

    def objects(self, source: Source, *, limit: int = 0, quiet: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
        """Read a JSON object of each line (of the first `limit` lines), with its place."""
        for count, line in enumerate(source.lines()):
            if limit and count >= limit:
                return
            place = f"line {line.number}"
            try:
                yield place, _object(line.text)
            except Invalid as error:
                if not quiet:
                    self.found(place, error.message)


class Refused(Invalid):
    """A file that is not taken, for its first bad place."""


def _object(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise Invalid("expected a line of at most 64 MiB")
    value = decoded(text)
    if not isinstance(value, dict):
        raise Invalid(f"expected a JSON object, got {type(value).__name__}")
    return value
