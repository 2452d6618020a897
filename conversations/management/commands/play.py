"""`play FILE`: recorded conversations, live, at their own pace (issue 1)."""

import itertools
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.errors import SwitchboardError
from conversations.recordings.formats import recordings
from conversations.recordings.importing import key_of
from conversations.recordings.place import place
from conversations.recordings.playing import Part, part_of, play
from conversations.recordings.progress import Progress
from conversations.recordings.recording import Recording
from conversations.recordings.source import Source
from conversations.recordings.trouble import Trouble

LIMIT = 10  # conversations


class Command(BaseCommand):
    """Publish a recording through the bus, event after event."""

    help = "Play recorded conversations live. Where a recording has no times, about 40 characters are said a second."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file, how fast, and what to play of it."""
        parser.add_argument("file", type=Path, help="the recording; gzip is fine, the format is told by content")
        parser.add_argument("--speed", type=_speed, default=20.0, help="times as fast as recorded (default 20)")
        parser.add_argument("--tokens", action="store_true", help="stream agents' words as tokens, then their output")
        parser.add_argument("--conversation", metavar="ID", default="", help="play into this id (then ID-2, …)")
        parser.add_argument("--limit", type=_count, default=LIMIT, help=f"how many conversations (default {LIMIT})")
        parser.add_argument("--strict", action="store_true", help="stop at the first bad line")
        parser.add_argument("--name", default="", help="play as import:NAME (default: the file's name)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Play; ends when every conversation has ended."""
        file: Path = options["file"]
        trouble = Trouble(self.stderr.write, is_strict=options["strict"])
        progress = Progress(self.stderr, "Playing: {} events, {} conversations going on")
        try:
            with place(options["name"] or Source(file).stem) as to:
                parts = self._parts(file, trouble, options)
                count = play(parts, to.publish, progress=progress.tell)
        except (SwitchboardError, OSError) as error:
            raise CommandError(f"{file.name} was not played to its end: {error}") from None
        except KeyboardInterrupt:
            raise CommandError("stopped", returncode=130) from None
        finally:
            progress.end()
        self.stdout.write(f"Played {count:,} events in {len(parts)} conversations.")

    def _parts(self, file: Path, trouble: Trouble, options: dict[str, Any]) -> list[Part]:
        """Choose what to play. A single conversation is read while it plays; several are read before."""
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        parts: list[Part] = []
        chosen = itertools.islice(recordings(file, trouble), options["limit"])
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
        raise ArgumentTypeError(f"expected a number from 0.01 to 10000, got {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)
