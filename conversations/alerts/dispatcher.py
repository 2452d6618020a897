"""The thread that evaluates rules and sends deliveries. One in each serving process; the rows decide who sends what.

It has its own event loop, so that slow receivers and queries delay nothing else. It holds at most `MAX_AT_ONCE`
deliveries; everything else stays in the database.
"""

import asyncio
import contextlib
import logging
import smtplib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError

from conversations.alerts import deliveries, delivery_texts, evaluation, mail_sender, signing
from conversations.alerts.deliveries import MAX_AT_ONCE, Outcome
from conversations.core import http_post
from conversations.core.background_loop import cancel_all
from conversations.core.database_clock import database_now
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Invalid, Unavailable
from conversations.core.failpoints import failpoint
from conversations.core.outbound_address import AddressRefused
from conversations.core.secret_masking import mask
from conversations.core.write_transaction import write_transaction
from conversations.events import commit_listeners, registry
from conversations.events.background_thread import BackgroundThread
from conversations.events.log.records import Stored
from conversations.models import AlertDelivery

logger = logging.getLogger(__name__)

POLL_EVERY_S = 1.0
POLL_EVERY_IDLE_S = 15.0  # the same without rules; a change in this process is seen at once
SLOW_EVERY = 15.0  # seconds between looks at what changes slowly
FORGET_EVERY = 3600.0  # seconds between looks for what is over for long
MAX_RESOLVERS = 8  # threads that resolve names or send e-mail

_dispatchers: list["Dispatcher"] = []


class Sending(NamedTuple):
    """An attempt in progress: the rule's id, and the task."""

    rule: int
    task: asyncio.Task[None]


def wake() -> None:
    """Make this process's dispatcher run at once: a rule or a delivery changed."""
    for dispatcher in tuple(_dispatchers):
        dispatcher.wake()


class Dispatcher(BackgroundThread):
    """The dispatcher thread, started by the server and ended by `close`; unfinished deliveries are left to others."""

    ENDED = "the alerts thread has ended"
    WAITING = "alerts are waiting"

    def __init__(self, site: str) -> None:
        super().__init__("alerts")
        self._site = next(iter(settings.CONFIG.allowed_origins), site)
        self._loop = asyncio.new_event_loop()
        self._news = asyncio.Event()
        self._sending: dict[tuple[str, int], Sending] = {}  # by delivery and attempt, until it is written
        self._outcomes: list[Outcome] = []
        self._slow_at = self._forgot_at = float("-inf")
        self._failure: Exception | None = None  # of the last look at the rules

    def wake(self) -> None:
        """Run at once. Callable from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._news.set)

    def run(self) -> None:
        """Work until `close`."""
        stop_listening = commit_listeners.on_committed(self._committed)
        _dispatchers.append(self)
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._work())
        finally:
            _dispatchers.remove(self)
            stop_listening()

    def _committed(self, stored: Iterable[Stored]) -> None:
        if any((known := registry.declared(event.kind)) is not None and known.alarm for event in stored):
            self.wake()

    async def _work(self) -> None:
        self._loop.set_default_executor(ThreadPoolExecutor(MAX_RESOLVERS, "alerts-resolver"))
        database = DatabaseThreads("alerts")
        while self._is_open:
            self._news.clear()
            pause = await self._round(database)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), pause)
        await self._finish(database)
        database.shutdown()

    async def _round(self, database: DatabaseThreads) -> float:
        """Store outcomes, evaluate, start what is due; return for how many seconds nothing else is to be done."""
        outcomes = list(self._outcomes)
        try:
            pause, claimed = await database.run(self._step, outcomes)
        except Exception as error:  # whatever it is, the thread must live
            self._note_error(error)
            return POLL_EVERY_S
        self._note("" if self._failure is None else f"rules cannot be evaluated: {self._failure}"[:200], self._failure)
        del self._outcomes[: len(outcomes)]
        for outcome in outcomes:
            self._sending.pop((outcome.delivery, outcome.attempt), None)
        for delivery in claimed:
            task = self._loop.create_task(self._send(delivery), name=f"alert {delivery.id}")
            self._sending[delivery.id, delivery.attempts] = Sending(delivery.rule_id, task)
        return pause

    def _step(self, outcomes: Sequence[Outcome]) -> tuple[float, list[AlertDelivery]]:
        """Do a round's database work. Deliveries in progress belong to the loop and change only there, while it awaits
        this."""
        clock, done = time.monotonic(), {(outcome.delivery, outcome.attempt) for outcome in outcomes}
        busy = Counter(sending.rule for key, sending in tuple(self._sending.items()) if key not in done)
        if outcomes:
            with write_transaction():
                deliveries.record(outcomes, database_now())
        if clock - self._forgot_at > FORGET_EVERY:
            evaluation.forget(database_now())
            self._forgot_at = clock
        pending = evaluation.pending()
        if not any(pending):
            self._failure = None
            return POLL_EVERY_IDLE_S, []
        now = database_now()
        is_more = self._evaluate(now, clock)
        return 0.0 if is_more else POLL_EVERY_S, self._claim(now, busy)

    def _evaluate(self, now: int, clock: float) -> bool:
        """Evaluate the rules; return whether there is more at once. Deliveries are sent even if this fails."""
        is_slow, self._failure = clock - self._slow_at > SLOW_EVERY, None
        self._slow_at = clock if is_slow else self._slow_at
        try:
            return evaluation.evaluate(now, is_slow=is_slow)
        except Exception as error:
            self._failure = error
            return False

    def _claim(self, now: int, busy: Counter[int]) -> list[AlertDelivery]:
        free = MAX_AT_ONCE - busy.total()
        if not free or not deliveries.is_due(now):
            return []
        with write_transaction():
            now = max(now, database_now())  # a lease lasts from the claim, however long the evaluation took
            return deliveries.claim(now, busy, free)

    async def _send(self, delivery: AlertDelivery) -> None:
        try:
            outcome = await self._attempt(delivery)
        except Exception as error:  # a bug of ours costs an attempt, and is reported
            logger.exception("an alert could not be sent")
            outcome = Outcome(delivery.id, delivery.attempts, f"internal error: {error}")
        failpoint("before-delivery-recorded")
        self._outcomes.append(outcome)
        self._news.set()

    async def _attempt(self, delivery: AlertDelivery) -> Outcome:
        """Send a delivery once; return the outcome."""
        key, timeout_s = (delivery.id, delivery.attempts), settings.CONFIG.alert_timeout_s
        try:
            if delivery.rule.form == "email":
                sent = self._loop.run_in_executor(None, mail_sender.send, delivery, self._site, timeout_s)
                await asyncio.wait_for(sent, deliveries.lease_s() / 2)
                return Outcome(*key)
            body = delivery_texts.webhook_body(delivery, self._site)
            headers = signing.headers(delivery.rule.secret, delivery.id, body, int(time.time()))
            allowed = settings.CONFIG.alert_allow_list
            answer = await http_post.post(delivery.rule.url, headers, body, allowed=allowed, timeout_s=timeout_s)
        except (AddressRefused, Invalid) as error:
            return Outcome(*key, str(error), is_final=True)
        except mail_sender.RecipientsRefused as error:
            return Outcome(*key, str(error), reached=error.accepted)
        except TimeoutError:
            return Outcome(*key, "the mail server did not answer in time")
        except (http_post.PostFailed, OSError, smtplib.SMTPException) as error:
            return Outcome(*key, mask(str(error)) or type(error).__name__)
        error_text = "" if 200 <= answer.status < 300 else f"HTTP {answer.status}"
        is_final = answer.status == deliveries.GONE
        return Outcome(*key, error_text, answer.status, answer.retry_after_s, is_final)

    async def _finish(self, database: DatabaseThreads) -> None:
        """Store outcomes and release the rest."""
        await cancel_all(sending.task for sending in self._sending.values())
        with contextlib.suppress(Unavailable, DatabaseError):  # then the leases end in their time
            await database.run(self._give_back)

    def _give_back(self) -> None:
        if not self._sending:
            return
        now = database_now()
        with write_transaction():
            deliveries.record(self._outcomes, now)
            deliveries.release(list(self._sending), now)
