"""Where a recording goes: through the door of the server that holds the data directory, else into the log itself."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from django.conf import settings
from django.db import connection

from conversations import datadir, envelopes, log, principals
from conversations.errors import Unavailable
from conversations.log.writer import CHECKPOINT
from conversations.management import tables
from conversations.recordings.door import Door
from conversations.recordings.intake import Intake
from conversations.recordings.recording import encoded
from conversations.recordings.wire import Taker


class Place(Protocol):
    """What `import` and `play` write to."""

    def intake(self) -> Taker:
        """Begin an import."""

    def publish(self, topic: str, payload: dict[str, Any], bus_id: str) -> None:
        """Publish one message; answer when it is stored."""


class Here:
    """The log of this process, which holds the data directory alone. Makes the tables when there are none yet."""

    def __init__(self, name: str) -> None:
        self._principal = principals.of_import(name)
        tables.bring_up_to_date()
        log.discard_staged()  # on SQLite nobody else can be importing
        if connection.vendor == "sqlite":  # the only writer looks after the write-ahead log (design, section 6)
            connection.cursor().execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")

    def intake(self) -> Taker:
        """Begin an import."""
        return Intake(self._principal)

    def publish(self, topic: str, payload: dict[str, Any], bus_id: str) -> None:
        """Store one message. Raises `Invalid` or `TooLarge` for one that the log refuses."""
        body = encoded(payload)
        log.append([log.of_payload(topic, bus_id, body.decode(), envelopes.read(body), self._principal)])


@contextmanager
def place(name: str) -> Iterator[Place]:
    """Answer where to write as `import:name`. Raises `Unavailable` when neither the lock nor the door is to be had."""
    with ExitStack() as stack:
        try:
            stack.enter_context(datadir.hold(settings.DATA_DIR))
        except Unavailable as held:
            yield stack.enter_context(_door(name, held))
        else:
            yield Here(name)


@contextmanager
def _door(name: str, held: Unavailable) -> Iterator[Door]:
    with ExitStack() as stack:
        try:
            door = stack.enter_context(Door.open(settings.DATA_DIR, name))
        except Unavailable as shut:
            raise Unavailable(f"{held.message}, and {shut.message}") from None
        yield door
