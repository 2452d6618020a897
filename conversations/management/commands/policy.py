"""`manage.py policy [FILE]`: print the operators' policy, or make a file the whole of it."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.core import schema_state
from conversations.core.errors import SwitchboardError, reason_of
from conversations.core.principals import SYSTEM
from conversations.management import option_rules
from conversations.runs.policy import evaluate, file_format
from conversations.runs.policy.edit_policy import load_policies


class Command(BaseCommand):
    """Works beside a running server: running runs heed the rules within a second."""

    help = (
        "Print the policy as JSON. With FILE (or - for standard input), replace the whole policy, "
        "or change nothing if the file has errors."
    )
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "file", nargs="?", help="policy file in the format this command prints; - reads standard input"
        )
        parser.add_argument("--reason", default="", help="reason, kept in the audit log")

    def handle(self, *args: Any, file: str | None, reason: str, **options: Any) -> None:
        """Print it, or load the file and say what changed."""
        schema_state.ensure()
        if file is None:
            option_rules.require("FILE", {"reason": reason}, ("reason",))
            self.stdout.write(file_format.text(evaluate.stored().values()), ending="")
            return
        try:
            content = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
            loaded = load_policies(SYSTEM, file_format.read(content), reason=reason)
        except (SwitchboardError, OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} was not loaded; nothing has changed: {reason_of(error, file)}") from None
        summary = ", ".join(f"{number} {word}" for word, number in loaded._asdict().items())
        self.stdout.write(f"Policy loaded from {file}: {summary}.")
