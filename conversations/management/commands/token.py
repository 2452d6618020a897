"""`manage.py token NAME --role R`: make a bearer token for a program or an agent, or revoke it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.access.accounts.tokens import TOKEN_ROLES, make_token, revoke_token
from conversations.core import schema_state
from conversations.core.errors import SwitchboardError
from conversations.core.principals import SYSTEM


class Command(BaseCommand):
    """Works beside a running server; a revoked token's sockets close within a second."""

    help = "Create a bearer token. The last line of standard output is the token alone; it is not shown again."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("name")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--role", choices=TOKEN_ROLES)
        what.add_argument("--revoke", action="store_true")
        parser.add_argument("--agent", default="", help="with --role agent: the agent it speaks for (default: NAME)")

    def handle(self, *args: Any, name: str, role: str | None, agent: str, **options: Any) -> None:
        """Make or revoke it."""
        schema_state.ensure()
        try:
            self.stdout.write(self._apply(name, role, agent))
        except SwitchboardError as error:
            raise CommandError(error.full_message) from error

    def _apply(self, name: str, role: str | None, agent: str) -> str:
        if role:
            return make_token(SYSTEM, name, role, agent=agent)
        revoke_token(SYSTEM, name)
        return f"token {name} is revoked"
