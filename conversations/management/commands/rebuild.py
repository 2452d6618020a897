"""`rebuild`: empty the projections and fold them again from the events (design, law I)."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations import datadir
from conversations.errors import Unavailable
from conversations.log.rebuild import rebuild


class Command(BaseCommand):
    """Needs the data directory for itself."""

    help = "Fold every conversation's counters, participants and tool calls again from its events."

    def handle(self, *args: Any, **options: Any) -> None:
        """Rebuild and say how much."""
        try:
            with datadir.hold(settings.DATA_DIR):
                done = [n for _, n in rebuild()]
        except Unavailable as error:
            raise CommandError(f"{error.message}: stop it first") from None
        self.stdout.write(f"Folded {sum(done):,} events of {len(done):,} conversations.")
