"""`manage.py signin-link NAME`: make a link that signs a person in, once, for a limited time."""

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.access.accounts import people
from conversations.access.accounts.sign_in_links import PATH, VALID_HOURS, make_link
from conversations.core import schema_state
from conversations.core.errors import SwitchboardError
from conversations.core.principals import SYSTEM


class Command(BaseCommand):
    """Works beside a running server."""

    help = "Create a one-time sign-in link. The last line of standard output is the link alone."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("name")
        parser.add_argument(
            "--url",
            default=_first_origin(),
            help="server address, such as http://127.0.0.1:8000 (default: from SWITCHBOARD_ORIGINS)",
        )

    def handle(self, *args: Any, name: str, url: str, **options: Any) -> None:
        """Make it and print it."""
        schema_state.ensure()
        if url and not _is_address(url):
            raise CommandError(f"--url must be the server's address, such as http://127.0.0.1:8000; got {url[:200]!r}")
        name = people.spelled(name)
        try:
            secret = make_link(SYSTEM, name)
        except SwitchboardError as error:
            raise CommandError(error.full_message) from error
        where = "" if url else " Put the server's address in front of it, or pass --url."
        self.stderr.write(f"Sign-in link for {name}. It works once and expires in {VALID_HOURS} hours.{where}")
        self.stdout.write(f"{url.rstrip('/')}{PATH}?t={secret}")


def _is_address(url: str) -> bool:
    """Return whether a browser finds a server there: a scheme, a host, and nothing after them."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0 and parts.path in ("", "/")
    except ValueError:  # no host, or no port, that can be read
        return False
    return is_whole and parts.scheme in ("http", "https") and url.isprintable() and not (parts.query or parts.fragment)


def _first_origin() -> str:
    """Return the address browsers use, where the settings name it: https before http."""
    return next(iter(sorted(settings.CONFIG.allowed_origins, key=lambda origin: not origin.startswith("https:"))), "")
