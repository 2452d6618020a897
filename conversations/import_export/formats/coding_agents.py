"""Session files of coding agents: one conversation a file. The modules of `conversations.coding_agents` read the lines,
and say at their top what each becomes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conversations.coding_agents import claude_code_session, codex_session, pi_session
from conversations.coding_agents.session_events import SessionEvent
from conversations.coding_agents.session_lines import Line, SessionReader
from conversations.core.errors import Invalid
from conversations.import_export.file_reader import LOOK, RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import HERE, FileTimes, RecordedStep, Recording


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """The files of one program, by its reader's module. `session_follower` reads them with the same one."""

    NAME: str
    fits: Callable[[object], bool]
    reader_of: Callable[[Line], SessionReader]
    READS: tuple[str, ...] = ("lines",)

    def read(self, source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
        """Yield the one recording, named after its session."""
        looked_at = report.objects(source, limit=LOOK, quiet=True)
        reader = self.reader_of(next(line for _, line in looked_at if self.fits(line)))
        yield Recording(reader.speaker.conversation, "", _steps(source, report, reader))


SESSIONS = (
    SessionFormat("Claude Code sessions", claude_code_session.is_line, claude_code_session.ClaudeCodeSession),
    SessionFormat("Codex sessions", codex_session.is_line, codex_session.CodexSession),
    SessionFormat("pi sessions", pi_session.is_line, pi_session.PiSession),
)


def _steps(source: RecordingFile, report: ImportReport, reader: SessionReader) -> Iterator[RecordedStep]:
    times = FileTimes()
    for location, line in report.objects(source):
        try:
            events = reader.events(line)
        except Invalid as error:
            report.add_problem(location, error.message)
            continue
        yield from (_step(event, times, location) for event in events)
    yield from (_step(event, times, "") for event in reader.rest(is_over=False))


def _step(event: SessionEvent, times: FileTimes, location: str) -> RecordedStep:
    payload = event.payload
    if str(payload.get("recipient")).startswith(HERE):
        payload = payload | {"recipient": HERE}
    return RecordedStep(event.prefix, payload, times.of(payload.get("created_at")).offset, location, has_own_id=True)
