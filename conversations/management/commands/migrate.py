"""`migrate`, without Django's look at the code: the tests do that, and it imports every page before the first word."""

from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands import migrate

from conversations.core import schema_state


class Command(migrate.Command):
    """Bring the tables up to date, as Django does."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments; the checks of the code are left out."""
        super().add_arguments(parser)
        parser.set_defaults(skip_checks=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate after whoever does so now; only what changes nothing does not wait."""
        if options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return
        with schema_state.migration_lock():
            super().handle(*args, **options)
