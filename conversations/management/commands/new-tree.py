"""`new-tree`: begin another signed tree, after an older backup was restored on purpose."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.core import schema_state
from conversations.core.errors import SwitchboardError
from conversations.core.principals import SYSTEM
from conversations.evidence import checkpoints
from conversations.evidence.checkpoints import Signer


class Command(BaseCommand):
    """Ends the tree there was, with an audit entry; the server makes new keys."""

    help = "Start a new signed tree, after a restore that does not match the one signed before."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the reason."""
        parser.add_argument("--reason", required=True, help="reason, stored in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        schema_state.ensure()
        config = settings.CONFIG
        try:
            ended = checkpoints.begin_anew(
                Signer(config.signing_key_path, config.record_name), SYSTEM, options["reason"]
            )
        except SwitchboardError as error:
            raise CommandError(error.full_message) from None
        self.stdout.write(
            f"The tree {ended} is closed. The server creates new keys: publish them and notify the witnesses."
        )
