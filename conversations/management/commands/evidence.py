"""`evidence ID`: a zip of conversations that anybody can check without this server."""

import shutil
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.core import private_file, schema_state
from conversations.core.errors import SwitchboardError, reason_of
from conversations.core.plain_text import counted
from conversations.evidence import bundle, witnesses
from conversations.evidence.checkpoints import Signer


class Command(BaseCommand):
    """Write an evidence bundle."""

    help = "Write a zip of conversations with proofs and signatures, and a verifier that needs nothing but Python."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the conversations, and where to write."""
        parser.add_argument("conversation", metavar="ID", nargs="*", help="conversations")
        parser.add_argument("--approval", default="", metavar="ID", help="the conversation of this approval request")
        parser.add_argument("--call", default="", metavar="ID", help="the conversation of this tool call")
        parser.add_argument(
            "--q", default="", metavar="WORDS", help="conversations with these words in their title, id or last line"
        )
        parser.add_argument("--participant", default="", metavar="NAME", help="conversations with this participant")
        parser.add_argument("--state", default="", choices=bundle.STATES, help="conversations in this state")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the zip file to write")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it; the file appears whole or not at all."""
        schema_state.ensure()
        config, path = settings.CONFIG, options["output"]
        try:
            keys = list(options["conversation"])
            for name in ("approval", "call"):
                keys += bundle.keys_of(**{name: options[name]}) if options[name] else []
            filters = {name: options[name] for name in ("q", "participant", "state")}
            if any(filters.values()):
                keys += bundle.keys_matching(**filters)
            signer = Signer(config.signing_key_path, config.record_name)
            show = partial(witnesses.submit_all, config.witness_list, config.witness_key_list, config.alert_allow_list)
            with (
                bundle.write(signer, keys, config.witness_key_list, show=show) as made,
                private_file.written_whole(path) as file,
            ):
                shutil.copyfileobj(made, file)
        except (SwitchboardError, OSError) as error:
            raise CommandError(f"no evidence was written: {reason_of(error)}") from None
        written = counted(len(set(keys)), "conversation")
        self.stdout.write(f"Wrote evidence for {written} to {path}; check it with the verify.py inside")
