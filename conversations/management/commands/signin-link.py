"""`manage.py signin-link NAME`: make a link that signs a person in, once, within 24 hours."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from conversations.actions.sign_in_links import make_link
from conversations.errors import SwitchboardError
from conversations.management import tables
from conversations.principals import SYSTEM


class Command(BaseCommand):
    """Works beside a running server."""

    help = "Make a one-time sign-in link; it stands alone on the last line of standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("name")
        parser.add_argument("--url", default="", help="the server's origin, such as http://127.0.0.1:8000")

    def handle(self, *args: Any, name: str, url: str, **options: Any) -> None:
        """Make it and print it."""
        tables.ensure()
        try:
            secret = make_link(SYSTEM, name)
        except SwitchboardError as error:
            raise CommandError(error.message) from error
        where = "" if url else " Put the server's address in front, or name it with --url."
        self.stderr.write(f"Works once, within 24 hours, for {name}.{where}")
        self.stdout.write(f"{url.rstrip('/')}{reverse('sign-in-link')}?t={secret}")
