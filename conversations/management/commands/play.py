"""`play FILE`: recorded conversations, live, at their own pace (issue 1)."""

import itertools
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from conversations.core.errors import SwitchboardError, reason_of
from conversations.core.plain_text import counted
from conversations.import_export.destination import open_destination
from conversations.import_export.detect_format import recordings
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_file import key_of
from conversations.import_export.import_report import ImportReport
from conversations.import_export.player import PlayedConversation, part_of, play
from conversations.import_export.progress import ProgressLine
from conversations.import_export.recording import Recording
from conversations.management.recorded_text import RecordedTextCommand

LIMIT = 10  # conversations


class Command(RecordedTextCommand):
    """Publish a recording through the bus, event after event."""

    help = "Play recorded conversations live. Recordings without timestamps play at about 40 characters per second."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file, how fast, and what to play of it."""
        parser.add_argument("file", type=Path, help="recording, optionally gzipped; the format is detected")
        parser.add_argument("--speed", type=_speed, default=20.0, help="playback speed factor (default 20)")
        parser.add_argument("--tokens", action="store_true", help="stream agents' messages as tokens, then as output")
        parser.add_argument(
            "--conversation", metavar="ID", default="", help="id of the first conversation, then ID-2, …"
        )
        parser.add_argument(
            "--limit", type=_count, default=LIMIT, help=f"maximum number of conversations (default {LIMIT})"
        )
        parser.add_argument("--strict", action="store_true", help="stop at the first invalid line")
        parser.add_argument("--name", default="", help="play as import:NAME (default: the file name)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Play; ends when every conversation has ended."""
        file: Path = options["file"]
        report = ImportReport(self.stderr.write, is_strict=options["strict"])
        progress = ProgressLine(self.stderr, "Playing: {} events, {} conversations in progress")
        try:
            with open_destination(options["name"] or RecordingFile(file).stem) as to:
                parts = self._parts(file, report, options)
                count = play(parts, to.publish, progress=progress.tell)
        except (SwitchboardError, OSError) as error:
            raise CommandError(f"{file.name} was not played to its end: {reason_of(error, file)}") from None
        except KeyboardInterrupt:
            raise CommandError("stopped", returncode=130) from None
        finally:
            progress.end()
        self.stdout.write(f"Played {counted(count, 'event')} in {counted(len(parts), 'conversation')}.")

    def _parts(self, file: Path, report: ImportReport, options: dict[str, Any]) -> list[PlayedConversation]:
        """Choose what to play. A single conversation is read while it plays; several are read before."""
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        parts: list[PlayedConversation] = []
        chosen = itertools.islice(recordings(file, report), options["limit"])
        for number, recording in enumerate(chosen, 1):
            if options["limit"] > 1:
                recording = Recording(recording.name, recording.title, list(recording.steps))
            key = key_of(recording, options["conversation"], number) if options["conversation"] else ""
            key = key or f"{recording.name[:180]}-{stamp}"
            parts.append(part_of(recording, key, speed=options["speed"], tokens=options["tokens"]))
            self.stdout.write(f"{key}: {recording.title or recording.name}")
        return parts


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 10_000:
        raise ArgumentTypeError(f"must be a number from 0.01 to 10000; got {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise ArgumentTypeError(f"must be a whole number, 1 or more; got {text!r}")
    return int(text)
