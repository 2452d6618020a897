"""`migrate`, without Django's look at the code: the tests do that, and it imports every page before the first word."""

from django.core.management.base import CommandParser
from django.core.management.commands import migrate


class Command(migrate.Command):
    """Bring the tables up to date, as Django does."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments; the checks of the code are left out."""
        super().add_arguments(parser)
        parser.set_defaults(skip_checks=True)
