"""`reindex`: make the search index again from the events. Nothing else changes: it is no part of the record."""

from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations import datadir
from conversations.errors import Unavailable
from conversations.search import index
from conversations.search.indexer import Indexer


class Command(BaseCommand):
    """On SQLite it needs the data directory for itself; on PostgreSQL a server that runs helps along."""

    help = "Empty the search index and fill it again from the events."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it and say how much."""
        try:
            with datadir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else nullcontext():
                index.begin()
                index.empty()
                indexer = Indexer()
                while index.lag().events:
                    self._step(indexer)
        except Unavailable as error:
            raise CommandError(f"{error.message}: stop it first") from None
        self.stdout.write(f"Indexed {indexer.indexed:,} events.")

    def _step(self, indexer: Indexer) -> None:
        try:
            indexer.step()
        except index.Superseded:  # a server was faster with these
            self.stdout.write("A server indexes too.", ending="\n")
