"""`expire`: take what is older than it may be kept out of the record: by rules of its own, or now by those that are
set, which the server's retention job goes by."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from conversations.access.action_context import find_conversation
from conversations.core import schema_state
from conversations.core.errors import Conflict, NotFound, SwitchboardError
from conversations.core.plain_text import counted
from conversations.core.principals import SYSTEM
from conversations.events import registry
from conversations.import_export.progress import ProgressLine
from conversations.management import option_rules
from conversations.management.commands.redact import purge
from conversations.management.recorded_text import RecordedTextCommand
from conversations.models import Agent
from conversations.redaction import expiry, journal, retention_clock, retention_job, retention_rules
from conversations.redaction.expiry import RetentionScope

DAY_US = 86_400_000_000
PROGRESS = "Expired: {} of {} events that are old enough"


class Command(RecordedTextCommand):
    """Works beside a running server, in short transactions with pauses as long."""

    help = "Redact events older than a number of days. What a legal hold covers stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is kept for how long."""
        parser.add_argument("--days", type=float, help="days to keep events (default: the retention rules)")
        parser.add_argument(
            "--kind", action="append", default=[], metavar="TYPE", help="only this event type; repeatable"
        )
        parser.add_argument("--conversation", default="", help="only this conversation")
        parser.add_argument("--team", default="", help="only conversations that an agent of this team handles")
        parser.add_argument("--reason", default="", help="reason, stored in the record and in the audit log")
        parser.add_argument(
            "--confirm-clock", action="store_true", help="believe this machine's clock, though it has jumped ahead"
        )
        parser.add_argument("--dry-run", action="store_true", help="count what would be redacted, and change nothing")

    def handle(self, *args: Any, days: float | None, **options: Any) -> None:
        """Expire, or count."""
        schema_state.ensure()
        if not options["dry_run"]:
            self._look_at_the_clock(is_confirmed=options["confirm_clock"])
        if days is None:
            option_rules.require("--days", options, ("kind", "conversation", "team", "reason"))
            self._by_rules(is_dry=options["dry_run"])
            return
        if not 0 < days <= retention_rules.MAX_DAYS:
            raise CommandError(f"--days must be a number greater than 0 and at most {retention_rules.MAX_DAYS:,}")
        self._require_targets(options)
        older_than = retention_clock.machine_time() - int(days * DAY_US)
        rule = RetentionScope(older_than, options["kind"], options["conversation"], options["team"])
        if options["dry_run"]:
            self._preview(rule)
            return
        progress = ProgressLine(self.stderr, PROGRESS)
        try:
            expired, held = expiry.expire(SYSTEM, rule, options["reason"], progress.tell)
        except SwitchboardError as error:
            raise CommandError(error.full_message) from None
        finally:
            progress.end()
        self.stdout.write(f"Expired {counted(expired, 'event')}; {held:,} are on hold or belong to an active run.")
        if expired:
            journal.update(settings.DATA_DIR)
            purge(self.stdout)

    def _look_at_the_clock(self, *, is_confirmed: bool) -> None:
        """Raise CommandError if it has jumped ahead and nobody confirms it."""
        if is_confirmed:
            retention_clock.confirm(SYSTEM)
        try:
            retention_clock.require_steady()
        except Conflict as error:
            raise CommandError(f"{error.full_message}. If the clock is right, add --confirm-clock") from None

    def _require_targets(self, options: dict[str, Any]) -> None:
        """Raise CommandError for a conversation or a team that is not there; warn of an unknown event type, which other
        programs may write."""
        try:
            if options["conversation"]:
                find_conversation(options["conversation"])
        except NotFound as error:
            raise CommandError(error.full_message) from None
        if options["team"] and not Agent.objects.filter(team=options["team"]).exists():
            raise CommandError(f"there is no agent of the team {options['team']}")
        for kind in options["kind"]:
            if registry.find(kind) is None:
                self.stderr.write(f"{kind} is no known event type")

    def _by_rules(self, *, is_dry: bool) -> None:
        count = 0
        for rule in retention_rules.rules():
            self.stdout.write(f"Rule {rule.pk}: {rule.days:,} days, {rule.reason}")
            if is_dry:
                self._preview(retention_rules.selector(rule))
            else:
                progress = ProgressLine(self.stderr, PROGRESS)
                try:
                    expired, held = retention_job.run_rule(rule, progress.tell)
                finally:
                    progress.end()
                self.stdout.write(
                    f"Expired {counted(expired, 'event')}; {held:,} are on hold or belong to an active run."
                )
                count += expired
        if count:
            journal.update(settings.DATA_DIR)
            purge(self.stdout)

    def _preview(self, rule: RetentionScope) -> None:
        counts, held = expiry.preview(rule)
        for kind, count in sorted(counts.items()):
            self.stdout.write(f"{kind}: {count:,}")
        self.stdout.write(f"{counted(counts.total(), 'event')}, of which {held:,} are on hold. Nothing was changed.")
