"""Codex sessions: one conversation a file. `conversations.coding_agents.codex_session` reads the lines."""

from collections.abc import Iterator

from conversations.coding_agents.codex_session import CodexSession, is_line
from conversations.import_export import session_recording
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording

NAME = "Codex sessions"
READS = ("lines",)


def fits(sample: object) -> bool:
    """Return whether a line is of this format."""
    return is_line(sample)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read the one recording."""
    yield from session_recording.read(source, report, is_line, CodexSession)
