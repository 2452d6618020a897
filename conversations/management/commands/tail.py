"""`tail CONVERSATION`: what happens in a conversation, as it happens, as text (`transcript_text.plain`) or as JSON."""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.core.errors import SwitchboardError
from conversations.core.json_values import text_of
from conversations.events.log.records import Stored
from conversations.import_export import server_client
from conversations.import_export.server_client import ServerAccess
from switchboard.errors import BusError
from switchboard.following import FeedMessage, follow


class Command(BaseCommand):
    """Print events as the server's feed tells them; connects again when the server was away, and misses nothing."""

    help = (
        "Print the events of a conversation as they happen. Reads from SWITCHBOARD_URL with SWITCHBOARD_TOKEN; without"
        " them from the server that uses this data directory. Ends with Ctrl-C."
    )
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the conversation, how to write, and where to begin."""
        parser.add_argument("conversation", metavar="ID")
        parser.add_argument("--json", action="store_true", help="one line of JSON per event, with all fields")
        start = parser.add_mutually_exclusive_group()
        start.add_argument("--from-start", action="store_true", help="start with the first event (default: now)")
        start.add_argument("--after", metavar="PLACE", help="start after this feed id, as printed by --json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print until it is stopped."""
        after = "0" if options["from_start"] else options["after"]
        try:
            write = self._write_json if options["json"] else self._write_words()
            with _access() as (url, token, renew):
                for message in follow(url, token, conversation=options["conversation"], after=after, renew=renew):
                    write(message)
        except (SwitchboardError, BusError, ValueError) as error:
            raise CommandError(f"{options['conversation']} cannot be followed: {error}") from None
        except BrokenPipeError:  # whoever read has ended
            sys.stdout = None  # nothing is flushed into it at the end
        except KeyboardInterrupt:
            raise CommandError("stopped", returncode=130) from None

    def _write_json(self, message: FeedMessage) -> None:
        self._write(json.dumps(message.data | {"event": message.name, "id": message.id}))

    def _write_words(self) -> Callable[[FeedMessage], None]:
        """Return what writes one message of the feed after the other in words."""
        render: Callable[[Stored], str | None] | None = None

        def write(message: FeedMessage) -> None:
            nonlocal render
            if message.name != "event":
                self._write(f"--- events may be missing here: {message.data.get('reason')}\n")
                return
            render = render or _plain_text()
            if (words := render(_stored(message.data))) is not None:
                self._write(words.rstrip("\n") + "\n")

        return write

    def _write(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


@contextmanager
def _access() -> Iterator[ServerAccess]:
    """Give the server and a token for it: of the environment, else of this data directory until the block ends. A
    server of this data directory that starts again gives another one. Raises ValueError for a server without a
    token."""
    url, token = os.environ.get("SWITCHBOARD_URL", ""), os.environ.get("SWITCHBOARD_TOKEN", "")
    if url:
        if not token:
            raise ValueError("SWITCHBOARD_TOKEN is not set")
        yield ServerAccess(url, token)
    else:
        with server_client.access(settings.DATA_DIR, "tail") as access:
            yield access


def _plain_text() -> Callable[[Stored], str | None]:
    """Return what renders events as text. It imports the templates, at the first event only."""
    from conversations.rendering import transcript_text
    from conversations.rendering.event_renderer import RepeatWatch

    return partial(transcript_text.plain, repeats=RepeatWatch())


def _stored(data: dict[str, Any]) -> Stored:
    body = json.dumps(data["body"], ensure_ascii=False)
    return Stored(
        str(data["conversation_id"]), int(data["seq"]), str(data["kind"]), int(data["at"]), str(data["principal"]),
        text_of(data.get("run_id")), None, text_of(data.get("event_id")), body,
    )  # fmt: skip
