"""Follow a coding agent's session file while it is written: each complete line becomes its events, once.

The events' ids come from the file, so a follower always starts at the beginning, and what is stored stays as it is. A
file that was truncated or replaced is read again. Called by the command `follow`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from conversations.coding_agents import claude_code, codex, pi
from conversations.coding_agents.session_events import SessionEvent
from conversations.coding_agents.session_lines import Line, SessionReader
from conversations.core.errors import Conflict, Invalid, SwitchboardError, TooLarge
from conversations.import_export.file_reader import LOOK, MAX_LINE
from conversations.import_export.recording import decoded

Publish = Callable[[str, dict[str, Any], str], None]  # topic, payload, bus id; returns when it is stored
Report = Callable[[str], None]

READERS: tuple[tuple[Callable[[object], bool], Callable[[Line], SessionReader]], ...] = (
    (claude_code.is_line, claude_code.ClaudeCodeSession),
    (codex.is_line, codex.CodexSession),
    (pi.is_line, pi.PiSession),
)
CHUNK = 1 << 20


class _Place(NamedTuple):
    """Which file it is (a replaced one differs), and how far it is read."""

    device: int
    number: int
    offset: int


class SessionFollower:
    """Follows one file. `conversation` is known once a line has named the session."""

    def __init__(self, path: Path, publish: Publish, report: Report) -> None:
        self._path, self._publish, self._report = path, publish, report
        self.conversation = ""
        self.published = 0
        self._rest: list[SessionEvent] = []  # of the session before, whose file another one has replaced
        self._begin()

    def poll(self) -> int:
        """Publish the new complete lines; return how many. Raises what `publish` raises; then the same lines are read
        again the next time."""
        try:
            with self._path.open("rb") as file:
                return self._read(file.fileno())
        except FileNotFoundError:
            return 0
        except SwitchboardError:
            self._begin()
            raise

    def settle(self) -> None:
        """Publish what only the end of an answer makes certain, because nothing was written for a while."""
        self._publish_rest()
        if self._reader is not None:
            self._publish_all(self._reader.rest())

    def _publish_rest(self) -> None:
        self._publish_all(self._rest)
        self._rest = []

    def _begin(self) -> None:
        self._place = _Place(0, 0, 0)
        self._reader: SessionReader | None = None
        self._before: list[tuple[int, Line]] = []  # lines that came before one that tells the session
        self._number = 0

    def _read(self, descriptor: int) -> int:
        status = os.fstat(descriptor)
        is_same = (self._place.device, self._place.number) == (status.st_dev, status.st_ino)
        if not is_same or status.st_size < self._place.offset:
            if self._reader is not None:
                self._rest = self._reader.rest()
            self._begin()
            self._place = _Place(status.st_dev, status.st_ino, 0)
        lines = 0
        while text := self._next(descriptor):
            self._take(text)
            self._place = self._place._replace(offset=self._place.offset + len(text))
            lines += 1
        return lines

    def _next(self, descriptor: int) -> bytes:
        """Return the next complete line; empty if its end is not written yet."""
        text, at = b"", self._place.offset
        while chunk := os.pread(descriptor, CHUNK, at + len(text)):
            line, mark, _ = chunk.partition(b"\n")
            text += line + mark
            if mark:
                return text
            if len(text) > MAX_LINE:
                raise Invalid(f"line {self._number + 1} of {self._path.name} must be at most {MAX_LINE >> 20} MiB")
        return b""

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
            reader = next((reader for is_line, reader in READERS if is_line(line)), None)
            if reader is None:
                return
            new = reader(line)
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
