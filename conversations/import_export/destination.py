"""Where a recording is written: through the server that holds the data directory, else directly to the log."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from django.conf import settings
from django.db import connection

from conversations.core import data_dir, principals, schema_state
from conversations.core.errors import Unavailable
from conversations.events import log
from conversations.events.log.commit_batch import be_writer
from conversations.events.payload import parse
from conversations.import_export.import_lines import LineReceiver
from conversations.import_export.recording import encoded
from conversations.import_export.server_client import ServerClient
from conversations.import_export.staged_import import StagedImport


class Destination(Protocol):
    """What `import` and `play` write to."""

    def page_of(self, conversation: str) -> str:
        """Return the address of a conversation's page; empty while no server runs."""

    def intake(self) -> LineReceiver:
        """Start an import."""

    def publish(self, topic: str, payload: dict[str, Any], bus_id: str) -> None:
        """Publish one message; return when it is stored."""


class LocalDatabase:
    """The log of this process, which on SQLite holds the data directory alone. Creates the tables if there are none.
    Older ones are migrated on SQLite, and refused on PostgreSQL, which others may serve: CommandError."""

    def __init__(self, name: str) -> None:
        self._principal = principals.import_principal(name)
        schema_state.bring_up_to_date() if connection.vendor == "sqlite" else schema_state.ensure()
        log.discard_staged()  # on SQLite nobody else can be importing
        if connection.vendor == "sqlite":  # the only writer looks after the write-ahead log (§6)
            be_writer(connection.cursor())

    def page_of(self, conversation: str) -> str:
        """Return nothing: no server runs."""
        return ""

    def intake(self) -> LineReceiver:
        """Start an import."""
        return StagedImport(self._principal)

    def publish(self, topic: str, payload: dict[str, Any], bus_id: str) -> None:
        """Store one message. Raises Invalid or TooLarge if the log refuses it."""
        body = encoded(payload)
        log.append([log.from_bus(topic, bus_id, body.decode(), parse(body), self._principal)])


@contextmanager
def open_destination(name: str) -> Iterator[Destination]:
    """Yield where to write as `import:name`. Raises Unavailable if another process holds the data directory and cannot
    be reached. On PostgreSQL a server, and other commands, may start beside this one."""
    with ExitStack() as stack:
        try:
            if connection.vendor == "sqlite":
                stack.enter_context(data_dir.hold(settings.DATA_DIR))
            else:
                stack.enter_context(data_dir.use(settings.DATA_DIR))
                data_dir.require_unheld(settings.DATA_DIR)
        except Unavailable as held:
            yield stack.enter_context(_running_server(name, held))
        else:
            yield LocalDatabase(name)


@contextmanager
def _running_server(name: str, held: Unavailable) -> Iterator[ServerClient]:
    with ExitStack() as stack:
        try:
            client = stack.enter_context(ServerClient.open(settings.DATA_DIR, name))
        except Unavailable as shut:
            raise Unavailable(f"{held.message}, and {shut.message}") from None
        yield client
