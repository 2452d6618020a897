"""A coding agent's session file as a recording, read by the same reader as a follower uses."""

from collections.abc import Callable, Iterator

from conversations.coding_agents.session_events import SessionEvent
from conversations.coding_agents.session_lines import Line, SessionReader
from conversations.core.errors import Invalid
from conversations.import_export.file_reader import LOOK, RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import HERE, FileTimes, RecordedStep, Recording


def read(
    source: RecordingFile,
    report: ImportReport,
    is_line: Callable[[object], bool],
    reader_of: Callable[[Line], SessionReader],
) -> Iterator[Recording]:
    """Yield the one recording, named after its session."""
    looked_at = report.objects(source, limit=LOOK, quiet=True)
    reader = reader_of(next(line for _, line in looked_at if is_line(line)))
    yield Recording(reader.speaker.conversation, "", _steps(source, report, reader))


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
