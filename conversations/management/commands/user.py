"""`manage.py user NAME --role R`: make a person, or change their roles."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.access.accounts import people, sign_in
from conversations.core import schema_state
from conversations.core.errors import NotFound, SwitchboardError
from conversations.core.principals import SYSTEM
from conversations.models import User
from conversations.models.people import ROLES


class Command(BaseCommand):
    """Works beside a running server; open sockets notice within a second."""

    help = "Create a person, or change the roles of an existing one to exactly these."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("name")
        parser.add_argument("--role", action="append", default=[], choices=ROLES, help="can be repeated")
        parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
        switch = parser.add_mutually_exclusive_group()
        switch.add_argument("--deactivate", action="store_true", help="block the account")
        switch.add_argument("--activate", action="store_true", help="unblock the account")

    def handle(self, *args: Any, name: str, role: list[str], password_stdin: bool, **options: Any) -> None:
        """Do it and say what holds now."""
        schema_state.ensure()
        name = people.spelled(name)
        password = sys.stdin.readline().rstrip("\r\n") if password_stdin else ""
        if password_stdin and not password:
            raise CommandError("there is no password on standard input; nothing has changed")
        try:
            self._apply(name, role, password, options)
        except SwitchboardError as error:
            raise CommandError(error.full_message) from error
        person = User.objects.get(username=name)
        state = "" if person.is_active else " (deactivated)"
        self.stdout.write(f"{name}: {', '.join(sorted(person.role_names)) or 'no role'}{state}")

    def _apply(self, name: str, role: list[str], password: str, options: dict[str, Any]) -> None:
        person = User.objects.filter(username=name).first()
        if person is None and (options["deactivate"] or options["activate"]):
            raise NotFound(f"there is no person {name[:150]}")
        if person is None:
            people.create_person(SYSTEM, name, role, password=password)
            return
        if password:
            sign_in.fit_password(person, password)  # before anything is changed
        if role:
            people.set_roles(SYSTEM, name, role)
        if password:
            sign_in.set_password(SYSTEM, name, password)
        if options["deactivate"]:
            people.deactivate(SYSTEM, name)
        if options["activate"]:
            people.activate(SYSTEM, name)
