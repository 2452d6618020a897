"""Let external agents wait over HTTP for a decision: they are woken by commits and hold no thread. Used by the raw
endpoints for approval requests."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from conversations.access.authentication import Caller
from conversations.asgi import long_poll, route
from conversations.asgi.long_poll import LongPoll
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Busy, Invalid
from conversations.core.url_converters import whole_number
from conversations.models import Approval
from conversations.realtime.server_runtime import ServerRuntime
from conversations.runs.approvals import external_approvals
from conversations.runs.approvals.external_approvals import ExternalOutcome

POLL_EVERY_S = 1.0  # while waiting: heals a lost notification, and sees the server stop
RENEW_EVERY = 5.0  # seconds
MAX_WAITING = 10_000  # of one endpoint
T = TypeVar("T")


class AwaitedDecision(NamedTuple):
    """An approval request and the deadline for waiting. `renewed`: when its lease was last renewed; 0: to be renewed
    once, however short the wait is."""

    approval: Approval
    conversation: str
    deadline: float  # monotonic, as the next
    renewed: float = 0.0


class DecisionWait:
    """The clients that wait at one endpoint. `threads` run its database work."""

    def __init__(self, runtime: ServerRuntime, threads: str, *, who: str) -> None:
        self._runtime, self._who = runtime, who
        self._threads = DatabaseThreads(threads)
        self._news = LongPoll()
        self._count = 0
        self._awaited = Counter[str]()  # clients by request: an agent may send one again while it waits

    async def do(self, work: Callable[..., T], *args: object) -> T:
        """Run database work in a thread."""
        return await self._threads.run(work, *args)

    def require_room(self) -> None:
        """Raise Busy if the maximum number of clients is waiting."""
        if self._count >= MAX_WAITING:
            raise Busy(f"too many {self._who} wait for decisions", code="too_many")

    async def outcome(
        self, scope: route.Scope, receive: route.Receive, caller: Caller, awaited: AwaitedDecision
    ) -> ExternalOutcome | str:
        """Wait for the decision; if there is none at the end, return why. Raises NotSignedIn and NotAllowed if the
        permission was revoked."""
        gone = asyncio.ensure_future(long_poll.wait_for_disconnect(receive))
        self._count += 1
        self._awaited[awaited.approval.id] += 1
        try:
            with self._runtime.socket_registry.reading(caller) as reader:
                return await reader.unless_dismissed(self._until_decided(scope, awaited, gone))
        finally:
            self._count -= 1
            self._leave(awaited.approval)
            gone.cancel()

    def _leave(self, approval: Approval) -> None:
        self._awaited[approval.id] -= 1
        if not self._awaited[approval.id]:
            del self._awaited[approval.id]

    async def withdraw(self, approval: Approval, reason: str) -> None:
        """Withdraw a request, unless another client still waits for it here."""
        if approval.id not in self._awaited:
            await self.do(external_approvals.withdraw, [approval.id], reason)

    async def _until_decided(
        self, scope: route.Scope, awaited: AwaitedDecision, gone: asyncio.Future[None]
    ) -> ExternalOutcome | str:
        stopping = (scope.get("extensions") or {}).get("http.stopping")
        renewed = awaited.renewed
        with self._news.on(f"stream:{awaited.conversation}") as news:
            while True:
                news.clear()
                outcome = await self.do(external_approvals.outcome, awaited.approval)
                left = awaited.deadline - time.monotonic()
                why = "the agent stopped waiting" if gone.done() else "nobody decided in time" if left <= 0 else ""
                if stopping is not None and stopping.is_set():
                    why = why or "the server stopped"
                if outcome is not None or (why and renewed):
                    return outcome or why
                if time.monotonic() - renewed > RENEW_EVERY:
                    await self.do(external_approvals.renew, awaited.approval)
                    renewed = time.monotonic()
                await long_poll.wait_for_change(gone, news, max(0.0, min(left, POLL_EVERY_S)))


def wait_of(scope: route.Scope, usual_s: int, most_s: int) -> int:
    """Return how many seconds a request wants to wait. Raises Invalid, also for any other field."""
    fields = route.query(scope)
    if unknown := sorted(fields.keys() - {"wait_s"}):
        raise Invalid("must be wait_s", field=unknown[0][:40])
    return whole_number(fields.get("wait_s", str(usual_s)), "wait_s", 0, most_s)
