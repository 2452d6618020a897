"""The retention job: every `retention_every_s` (a day) the server goes through every rule, in short transactions with
pauses as long.

A round is over when every rule has run. A rule that fails keeps no other from its turn: it alone is tried again, each
minute. Of several processes on PostgreSQL one does it; what keeps two from doing the same twice is each transaction
itself.
"""

from __future__ import annotations

import threading
import time

from django.conf import settings
from django.db import connection

from conversations.core.db_threads import is_unavailable, with_connection
from conversations.core.errors import Unavailable
from conversations.core.principals import SYSTEM
from conversations.core.single_process_lease import SingleProcessLease
from conversations.core.write_transaction import write_transaction
from conversations.events.background_thread import BackgroundThread
from conversations.models import Meta, RetentionRule
from conversations.redaction import expiry, retention_clock, retention_rules

NAME = "retention"  # of the row that says when it last ran, µs UTC
POLL_EVERY_S = 60.0
RETRY_EVERY_S = 1.0  # while the database cannot be reached: `/readyz` tells it for no longer than it lasts


class RetentionJob(BackgroundThread):
    """Started by the server, ended by `close`, after the transaction that it has begun."""

    ENDED = "the retention thread has ended"
    WAITING = "retention is waiting"

    def __init__(self) -> None:
        super().__init__("retention")
        self._every = settings.CONFIG.retention_every_s
        self._woken = threading.Event()
        self._lease = SingleProcessLease("retention-job") if connection.vendor == "postgresql" else None

    def run(self) -> None:
        """Look every minute whether a round is due, until `close`. Trouble is waited out."""
        pause = POLL_EVERY_S
        while self._is_open:
            self._woken.wait(min(pause, self._every))
            self._woken.clear()
            pause = POLL_EVERY_S
            try:
                self._note(with_connection(self._work))
            except Unavailable as error:
                self._note_error(error)
                pause = RETRY_EVERY_S
            except Exception as error:  # whatever it is, the thread must live
                self._note_error(error)
        connection.close()

    def wake(self) -> None:
        """Look at once. From any thread."""
        self._woken.set()

    def _work(self) -> str:
        """Run the rules that have not run in the round that is due; return why none may. Raises the first of their
        errors at the end, one of the database as a whole at once."""
        if not self._goes_on():
            return ""
        if sentence := retention_clock.follow():
            return f"{sentence}: confirm it on the page Holds and retention, or correct the clock"
        if not self._is_due(last_run()):
            return ""
        errors: list[Exception] = []
        for rule in retention_rules.rules():
            if self._is_due(rule.ran_at or 0):
                errors += self._errors_of(rule)
            if not self._goes_on():
                return ""  # whoever goes on does the rest
        if errors:
            raise errors[0]
        note_run()
        return ""

    def _errors_of(self, rule: RetentionRule) -> list[Exception]:
        try:
            run_rule(rule, goes_on=self._goes_on)
        except Exception as error:  # whatever it is, the other rules must run
            if is_unavailable(error):
                raise
            return [error]
        return []

    def _is_due(self, ran_at: int) -> bool:
        return abs(time.time() - ran_at / 1e6) >= self._every  # one in the future is of a clock that was ahead

    def _goes_on(self) -> bool:
        return self._is_open and (self._lease is None or self._lease.hold())


def run_rule(
    rule: RetentionRule,
    progress: expiry.Progress = lambda *_: None,
    *,
    goes_on: expiry.GoesOn = lambda: True,
) -> tuple[int, int]:
    """Take out what one rule takes now, and note on it how many: redacted, held back. One that is stopped has not run:
    it does the rest when it is called again. Raises Conflict if the clock has jumped ahead."""
    retention_clock.require_steady()
    began = time.time_ns() // 1000
    reason = f"retention rule {rule.pk}: {rule.reason}"[:500]
    redacted, held = expiry.expire(
        SYSTEM, retention_rules.selector(rule), reason, progress, goes_on=lambda: goes_on() and _is_there(rule)
    )
    ran_at = {"ran_at": began} if goes_on() else {}
    with write_transaction():
        RetentionRule.objects.filter(pk=rule.pk).update(redacted=redacted, held=held, **ran_at)
    return redacted, held


def last_run() -> int:
    """Return when the job last went through all rules, µs UTC; 0: never."""
    value = Meta.objects.filter(name=NAME).values_list("value", flat=True).first()
    return int(value or 0)


def note_run() -> None:
    """Note that it went through all rules now."""
    with write_transaction():
        Meta.objects.update_or_create(name=NAME, defaults={"value": str(time.time_ns() // 1000)})


def _is_there(rule: RetentionRule) -> bool:
    return retention_rules.rules().filter(pk=rule.pk).exists()
