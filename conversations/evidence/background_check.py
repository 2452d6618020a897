"""The whole record checked beside the server, one check at a time in a deployment. Called by the audit page.

Its progress is a fact of the database, so that any process can show it. The thread that checks rests as long as it
worked.
"""

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from django.db import DatabaseError, connections, transaction

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.db_threads import release_connection
from conversations.core.errors import Conflict, SwitchboardError
from conversations.core.micros import to_datetime
from conversations.core.write_transaction import write_transaction
from conversations.evidence import state
from conversations.evidence.verdicts import verdicts
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.models import Meta

logger = logging.getLogger(__name__)

NAME = "verification"  # the fact of the database
TOLD_EVERY_S = 2.0
LOST_AFTER_S = 600.0  # without a word: its process has ended
MAX_REST_S = 1.0


@dataclass(frozen=True)
class Progress:
    """How far a check is: who began it, what it said, what is being counted now. Times are µs UTC."""

    id: str
    by: str
    began_at: int
    told_at: int
    verdicts: list[tuple[str, bool]] = field(default_factory=list)
    noun: str = ""
    count: int = 0
    ended: bool = False

    @property
    def is_lost(self) -> bool:
        """Tell that whoever ran it is gone."""
        return not self.ended and abs(time.time() - self.told_at / 1e6) > LOST_AFTER_S  # the clock may have been ahead

    @property
    def is_running(self) -> bool:
        """Tell that it goes on."""
        return not self.ended and not self.is_lost

    @property
    def is_ok(self) -> bool:
        """Tell that it has ended and everything was good."""
        return self.ended and bool(self.verdicts) and all(is_ok for _, is_ok in self.verdicts)

    @property
    def began(self) -> datetime:
        """When it began, as it is drawn."""
        return to_datetime(self.began_at)

    @property
    def outcome(self) -> str:
        """What came of it and when, for the audit page; empty where it has not ended."""
        age = state.age(max(0, int(time.time() - self.told_at / 1e6)))
        return f"{'whole' if self.is_ok else 'not whole'} as of {age} ago" if self.ended else ""


def current() -> Progress | None:
    """Return the last check that was begun; None where there was none."""
    value = Meta.objects.filter(name=NAME).values_list("value", flat=True).first()
    return Progress(**json.loads(value)) if value else None


def begin(by: Who, known: Settings, run: Callable[[Callable[[], None]], None]) -> None:
    """Have the record checked by what `run` gives a thread of its own. Raises `Conflict` while another check runs."""
    with audited_action(by, "verify", "record", right="audit") as principal:
        was, now = current(), time.time_ns() // 1000
        if was is not None and was.is_running:
            raise Conflict(f"{was.by} is already verifying the record")
        begun = Progress(secrets.token_hex(8), str(principal), now, now)
        Meta.objects.update_or_create(name=NAME, defaults={"value": json.dumps(asdict(begun))})
        chain.add_entry(principal, "verify", "record")
        transaction.on_commit(lambda: run(lambda: check(begun, known)))


def in_thread(work: Callable[[], None]) -> None:
    """Run a check beside everything else; it ends with the process."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    threading.Thread(target=run, name="record-check", daemon=True).start()


def check(begun: Progress, known: Settings) -> None:
    """Check the record, and tell how far it is."""
    progress = _ProgressNote(begun)
    try:
        for words, is_ok in verdicts(RecordCheck(known, progress=progress.count)):
            progress.say(words, is_ok=is_ok)
    except Exception as error:  # whatever it is, what was not checked is not whole
        logger.exception("the verification of the record could not be completed")
        release_connection()  # it may be broken
        is_expected = isinstance(error, SwitchboardError | DatabaseError | OSError)
        why = str(error) if is_expected else f"internal error: {type(error).__name__}: {error}"
        progress.say(f"The verification could not be completed: {why}", is_ok=False)
    progress.end()


class _ProgressNote:
    """What is written down of a check."""

    def __init__(self, begun: Progress) -> None:
        self._progress = begun
        self._worked = time.thread_time()

    def count(self, noun: str, count: int) -> None:
        """Say how far it is, every other second, and rest."""
        self._progress = replace(self._progress, noun=noun, count=count)
        if time.time() - self._progress.told_at / 1e6 > TOLD_EVERY_S:
            self._store()
        time.sleep(min(MAX_REST_S, max(0.0, time.thread_time() - self._worked)))
        self._worked = time.thread_time()

    def say(self, words: str, *, is_ok: bool) -> None:
        """Write a sentence down."""
        self._progress = replace(self._progress, verdicts=[*self._progress.verdicts, (words, is_ok)], noun="", count=0)
        self._store()

    def end(self) -> None:
        """Write down that it has ended."""
        self._progress = replace(self._progress, ended=True)
        self._store()

    def _store(self) -> None:
        self._progress = replace(self._progress, told_at=time.time_ns() // 1000)
        value = json.dumps(asdict(self._progress))
        with write_transaction():
            Meta.objects.filter(name=NAME, value__contains=self._progress.id).update(value=value)
