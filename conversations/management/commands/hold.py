"""`hold`: place, list and release legal holds."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from conversations.core import micros, schema_state
from conversations.core.errors import SwitchboardError
from conversations.core.principals import SYSTEM
from conversations.management import option_rules
from conversations.management.recorded_text import RecordedTextCommand
from conversations.redaction import legal_holds


class Command(RecordedTextCommand):
    """Works beside a running server."""

    help = "Place a legal hold, which prevents redaction. Without a conversation, list the holds in force."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to hold or which hold to release, and why."""
        parser.add_argument("conversation", nargs="?", metavar="CONVERSATION", help="conversation to hold; * for all")
        parser.add_argument("--reason", default="", help="reason, stored in the audit log")
        parser.add_argument("--regulated", action="store_true", help="class regulated: can never be released")
        parser.add_argument("--release", type=int, metavar="NUMBER", help="end this hold")

    def handle(self, *args: Any, conversation: str | None, **options: Any) -> None:
        """Do it and say so."""
        schema_state.ensure()
        given = options | {"conversation": conversation}
        if options["release"] is not None:
            option_rules.refuse_beside("--release", given, ("CONVERSATION", "regulated"))
        elif not conversation:
            option_rules.require("CONVERSATION", options, ("regulated", "reason"))
        try:
            if options["release"] is not None:
                legal_holds.release(SYSTEM, options["release"], options["reason"])
                self.stdout.write(f"Released hold {options['release']}.")
            elif conversation:
                made = legal_holds.place(SYSTEM, conversation, options["reason"], is_regulated=options["regulated"])
                self.stdout.write(f"Placed hold {made.pk} on {conversation}.")
            else:
                self._list()
        except SwitchboardError as error:
            raise CommandError(error.full_message) from None

    def _list(self) -> None:
        for hold in legal_holds.in_force():
            of = hold.conversation.key if hold.conversation else legal_holds.EVERYTHING
            kind = "regulated" if hold.is_regulated else "hold"
            self.stdout.write(
                f"{hold.pk} {kind} {of} {micros.to_datetime(hold.placed_at):%F} {hold.placed_by} {hold.reason}"
            )
