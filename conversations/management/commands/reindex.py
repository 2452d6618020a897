"""`reindex`: make the search index again from the events. Nothing else changes: it is not part of the record."""

from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations.core import data_dir, schema_state
from conversations.core.errors import Unavailable
from conversations.core.plain_text import counted
from conversations.events.log.commit_batch import be_writer
from conversations.import_export.progress import ProgressLine
from conversations.search import index_writer
from conversations.search.indexer import Indexer


class Command(BaseCommand):
    """On SQLite it needs the data directory for itself; on PostgreSQL a server that runs helps along."""

    help = "Rebuild the search index from the events."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it and say how much."""
        try:
            with data_dir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else nullcontext():
                schema_state.ensure()
                if connection.vendor == "sqlite":  # nobody else empties the write-ahead log meanwhile
                    be_writer(connection.cursor())
                index_writer.begin()
                index_writer.empty()
                indexer = Indexer()
                self._work(indexer)
        except Unavailable as error:
            raise CommandError(error.message + ": stop it first" * (error.code == data_dir.HELD)) from None
        self.stdout.write(f"Indexed {counted(indexer.indexed, 'event')}.")

    def _work(self, indexer: Indexer) -> None:
        progress, is_told = ProgressLine(self.stderr, "Indexed: {} events, {} to go"), False
        while left := index_writer.lag().events:
            progress.tell(indexer.indexed, left)
            try:
                indexer.step()
            except index_writer.IndexSuperseded:  # a server was faster with these
                if not is_told:
                    self.stdout.write("A running server is indexing as well.")
                is_told = True
        progress.end()
