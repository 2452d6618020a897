"""`manage.py policy [FILE]`: print the operators' policy, or make a file the whole of it."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations import policy, policy_form
from conversations.actions.policies import load_policies
from conversations.errors import SwitchboardError
from conversations.management import tables
from conversations.principals import SYSTEM


class Command(BaseCommand):
    """Works beside a running server: running runs heed the rules within a second."""

    help = (
        "Print the operators' policy as JSON; with a file (or - for standard input) make it the whole policy, "
        "or change nothing when anything in it is wrong."
    )
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", nargs="?", help="what this command prints without one; - reads standard input")
        parser.add_argument("--reason", default="", help="why; it is kept in the audit log")

    def handle(self, *args: Any, file: str | None, reason: str, **options: Any) -> None:
        """Print it, or load the file and say what changed."""
        tables.ensure()
        if file is None:
            self.stdout.write(policy_form.text(policy.stored().values()), ending="")
            return
        try:
            content = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
            loaded = load_policies(SYSTEM, policy_form.read(content), reason=reason)
        except (SwitchboardError, OSError, UnicodeDecodeError) as error:
            words = error.message if isinstance(error, SwitchboardError) else str(error)
            raise CommandError(f"{file} was not loaded, nothing has changed: {words}") from None
        told = ", ".join(f"{number} {word}" for word, number in loaded._asdict().items())
        self.stdout.write(f"The policy is {file} now: {told}.")
