"""`follow FILE`: a coding agent's session file, live, while it is written (`import_export.session_follower`)."""

import os
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from conversations.coding_agents.claude_code_session import MAX_PAUSE_S
from conversations.core.errors import Busy, Invalid, NotSignedIn, SwitchboardError, Unavailable, reason_of
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.server_client import REPORT, ServerClient
from conversations.import_export.session_follower import SessionFollower
from conversations.management.recorded_text import RecordedTextCommand

POLL_EVERY_S = 0.25  # the file
RETRIED = (Unavailable, Busy)
RETRY_AFTER_S = 1.0


class Command(RecordedTextCommand):
    """Publish what a session file says, until it is stopped."""

    help = (
        "Follow a session file of Claude Code, Codex or pi as it grows. Publishes to the server of this data "
        "directory, or to SWITCHBOARD_URL with SWITCHBOARD_TOKEN (a token of the role telemetry, or admin)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file."""
        parser.add_argument("file", type=Path, metavar="FILE", help="session file; it may not exist yet")
        parser.add_argument("--once", action="store_true", help="publish what the file contains now, then exit")
        parser.add_argument("--name", default="", help="publish as import:NAME (default: the file name)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Follow; goes on when the server is away for a while."""
        file: Path = options["file"]
        name = options["name"] or RecordingFile(file).stem
        if options["once"] and not file.exists():
            raise CommandError(f"there is no file {file}")
        follower = None
        while True:
            try:
                with _server(name) as server:
                    follower = SessionFollower(file, server.publish, self.stderr.write)
                    self._follow(follower, is_once=options["once"])
                return
            except RETRIED as error:
                if options["once"]:
                    raise CommandError(f"{file.name} was not followed: {error}") from None
                self.stderr.write(f"{error}; trying again")
                time.sleep(RETRY_AFTER_S)
            except (SwitchboardError, OSError) as error:
                raise CommandError(f"{file.name} was not followed: {reason_of(error, file)}") from None

    def _follow(self, follower: SessionFollower, *, is_once: bool) -> None:
        try:
            self._poll(follower, is_once=is_once)
        except KeyboardInterrupt:
            follower.settle(is_over=False)
            raise

    def _poll(self, follower: SessionFollower, *, is_once: bool) -> None:
        is_named, quiet_since, is_settled = False, time.monotonic(), True
        while True:
            if follower.poll(is_whole=is_once):
                quiet_since, is_settled = time.monotonic(), False
            if follower.conversation and not is_named:
                self.stdout.write(f"Following {follower.conversation}")
                self.stdout.flush()
                is_named = True
            if is_once or (not is_settled and time.monotonic() - quiet_since > MAX_PAUSE_S):
                follower.settle(is_over=not is_once)
                is_settled = True
            if is_once and not follower.conversation:
                raise Invalid("it names no session")
            if is_once:
                self.stdout.write(f"{follower.published:,} event{'s' * (follower.published != 1)} sent.")
                return
            time.sleep(POLL_EVERY_S)


@contextmanager
def _server(name: str) -> Iterator[ServerClient]:
    """Get to the server: where the environment says, else that of the data directory."""
    if address := os.environ.get("SWITCHBOARD_URL"):
        client = ServerClient(address, os.environ.get("SWITCHBOARD_TOKEN", ""), REPORT)
        try:
            yield client
        finally:
            client.close()
        return
    try:
        with ServerClient.open(settings.DATA_DIR, name) as client:
            yield client
    except NotSignedIn as error:  # the server is another one by now
        raise Unavailable(error.message) from None
