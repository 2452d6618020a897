"""Follow a coding agent's session file while it is written: each complete line becomes its events, once.

The events' ids come from the file, so a follower always starts at the beginning, and what is stored stays as it is. A
file that was truncated, replaced or rewritten is read again. Called by the command `follow`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from conversations.coding_agents.session_events import SessionEvent
from conversations.coding_agents.session_lines import Line, SessionReader
from conversations.core.errors import Conflict, Invalid, SwitchboardError, TooLarge
from conversations.import_export.file_reader import LOOK, MAX_LINE
from conversations.import_export.formats.coding_agents import SESSIONS
from conversations.import_export.recording import decoded

Publish = Callable[[str, dict[str, Any], str], None]  # topic, payload, bus id; returns when it is stored
Report = Callable[[str], None]

CHUNK = 1 << 20
BEGINNING, END = 4096, 64  # bytes of what was read, by which a file is known again


class _Place(NamedTuple):
    """Which file it is, how far it is read, and the first and last bytes of that: a new file may get the inode of the
    one that was removed."""

    device: int
    inode: int
    offset: int = 0
    beginning: bytes = b""
    end: bytes = b""

    def after(self, text: bytes, size: int) -> "_Place":
        """Return the place after `size` bytes, of which `text` are the last ones, or all."""
        beginning = (self.beginning + text)[:BEGINNING] if len(self.beginning) == self.offset else self.beginning
        return self._replace(offset=self.offset + size, beginning=beginning, end=(self.end + text)[-END:])

    def is_in(self, descriptor: int) -> bool:
        """Return whether an open file is this one, and what was read still stands in it."""
        status = os.fstat(descriptor)
        return (
            (self.device, self.inode) == (status.st_dev, status.st_ino)
            and os.pread(descriptor, len(self.beginning), 0) == self.beginning
            and os.pread(descriptor, len(self.end), self.offset - len(self.end)) == self.end
        )


class SessionFollower:
    """Follows one file. `conversation` is known once a line has named the session."""

    def __init__(self, path: Path, publish: Publish, report: Report) -> None:
        self._path, self._publish, self._report = path, publish, report
        self.conversation = ""
        self.published = 0
        self._rest: list[SessionEvent] = []  # of the session before, whose file another one has replaced
        self._begin()

    def poll(self, *, is_whole: bool = False) -> int:
        """Publish the new complete lines; return how many. `is_whole`: the last line may have no end. Raises what
        `publish` raises; then the same lines are read again the next time."""
        try:
            with self._path.open("rb") as file:
                return self._read(file.fileno(), is_whole=is_whole)
        except FileNotFoundError:
            return 0
        except SwitchboardError:
            self._begin()
            raise

    def settle(self, *, is_over: bool = True) -> None:
        """Publish what only the end of an answer makes certain, because nothing was written for a while; not
        `is_over`: without having waited."""
        self._publish_rest()
        if self._reader is not None:
            self._publish_all(self._reader.rest(is_over=is_over))

    def _publish_rest(self) -> None:
        self._publish_all(self._rest)
        self._rest = []

    def _begin(self) -> None:
        self._place = _Place(0, 0)
        self._searched = 0  # bytes of a line whose end is not written yet
        self._reader: SessionReader | None = None
        self._before: list[tuple[int, Line]] = []  # lines that came before one that tells the session
        self._number = 0

    def _read(self, descriptor: int, *, is_whole: bool) -> int:
        if not self._place.is_in(descriptor):
            status = os.fstat(descriptor)
            if self._reader is not None:
                self._rest = self._reader.rest(is_over=True)
            self._begin()
            self._place = _Place(status.st_dev, status.st_ino)
        lines = 0
        while size := self._next_size(descriptor) or (self._searched if is_whole else 0):
            text = os.pread(descriptor, min(size, MAX_LINE), self._place.offset)
            if len(text) < min(size, MAX_LINE):  # it was cut just now
                break
            if size <= MAX_LINE:
                self._take(text)
            else:
                self._number += 1
                self._report_skipped(self._number, Invalid(f"must be at most {MAX_LINE >> 20} MiB"))
                text = os.pread(descriptor, END, self._place.offset + size - END)
            self._place, self._searched = self._place.after(text, size), 0
            lines += 1
        return lines

    def _next_size(self, descriptor: int) -> int:
        """Return the bytes of the next complete line; 0 if its end is not written yet."""
        while chunk := os.pread(descriptor, CHUNK, self._place.offset + self._searched):
            end = chunk.find(b"\n") + 1
            self._searched += end or len(chunk)
            if end:
                return self._searched
        return 0

    def _take(self, text: bytes) -> None:
        number = self._number + 1
        try:
            line = decoded(text) if text.strip() else None
            if line is not None and not isinstance(line, dict):
                raise Invalid(f"must be a JSON object; got {type(line).__name__}")
        except Invalid as error:
            self._report_skipped(number, error)
            line = None
        if line is not None:
            self._read_line(number, line)
        self._number = number

    def _read_line(self, number: int, line: Line) -> None:
        if self._reader is None:
            self._before = [*self._before[-LOOK:], (number, line)]
            known = next((each for each in SESSIONS if each.fits(line)), None)
            if known is None:
                return
            new = known.reader_of(line)
            if new.speaker.conversation == self.conversation:
                self._rest = []  # the file says it again
            self._publish_rest()
            self._reader, self.conversation = new, new.speaker.conversation
            lines, self._before = self._before, []
        else:
            lines = [(number, line)]
        for place, one_line in lines:
            try:
                events = self._reader.events(one_line)
            except Invalid as error:
                self._report_skipped(place, error)
            else:
                self._publish_all(events)

    def _publish_all(self, events: list[SessionEvent]) -> None:
        for event in events:
            topic = f"{event.prefix}:{event.payload['conversation_id']}"
            try:
                self._publish(topic, event.payload, str(event.payload["id"]))
                self.published += 1
            except Conflict as error:  # a hook said it before, in its own words
                if error.code != "id_reused":
                    raise
            except (Invalid, TooLarge) as error:
                self._report_skipped(self._number + 1, error)

    def _report_skipped(self, number: int, error: SwitchboardError) -> None:
        self._report(f"{self._path.name}, line {number}: {error.message}; skipped")
