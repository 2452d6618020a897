"""Who a bearer token speaks for, asked of the database at most twice a second for each token."""

import asyncio
import functools
import logging
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from conversations import origins, principals, refusals, rights, sessions
from conversations.actions import tokens
from conversations.doors import http
from conversations.errors import NotAllowed, NotSignedIn
from conversations.principals import Principal
from conversations.sessions import Visitor
from conversations.threads import DatabaseThreads

logger = logging.getLogger(__name__)

FRESH = 0.5  # seconds an answer is good for
NOTE_EVERY = 60.0  # seconds between two notes that a token is used
MAX_KNOWN = 10_000
MAX_SECRET = 200  # characters; ours have 46, and what is asked for is remembered


class Known(NamedTuple):
    """An answer and when it was had."""

    visitor: Visitor | None
    at: float


class Bearers:
    """The tokens of one server: those of the table, and those this process gave out at its own door."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._asked: dict[str, asyncio.Task[Visitor | None]] = {}
        self._given: dict[str, Visitor] = {}
        self._noted: dict[str, float] = {}  # by digest, when a use was noted last
        self._lookups = DatabaseThreads("bearers")
        self._notes = DatabaseThreads("bearers-notes")  # these write: a lock they wait for holds no look-up up

    def give(self, name: str) -> str:
        """Give out a token for `import:NAME`, good while this process lives."""
        secret = secrets.token_urlsafe(32)
        self._given[secret] = Visitor(principals.of_import(name), rights.ADMIN)
        return secret

    async def require(self, scope: http.Scope, verb: str) -> Principal:
        """Answer whose token a request carries. Raises NotSignedIn without a good one, NotAllowed without the right.

        Refusals are counted for the audit log.
        """
        visitor = await self.visitor(scope, verb)
        if visitor.agent:
            raise await self.refuse(scope, verb, visitor)
        return visitor.principal

    async def visitor(self, scope: http.Scope, verb: str) -> Visitor:
        """Answer whose token it is, as `require`; an agent's token passes: what it may depends on the target."""
        secret = http.bearer(scope)
        visitor = self._given.get(secret) or (await self._look_up(secret) if 0 < len(secret) <= MAX_SECRET else None)
        if visitor is None:
            await self._count(scope, verb, "door", "no such token, or revoked")
            raise NotSignedIn("expected Authorization: Bearer with a token that is not revoked")
        self._note_use(visitor)
        if not visitor.agent and not rights.may(visitor.roles, verb):
            raise await self.refuse(scope, verb, visitor)
        return visitor

    async def refuse(self, scope: http.Scope, verb: str, visitor: Visitor, what: str = "") -> NotAllowed:
        """Count a refusal; answer the error to raise."""
        await self._count(scope, verb, str(visitor.principal), "without the right")
        return NotAllowed(f"{visitor.principal} may not {verb}{what and f' {what}'}")

    async def _count(self, scope: http.Scope, verb: str, target: str, reason: str) -> None:
        count = functools.partial(refusals.count, origins.address_of(scope), verb, target, reason=reason)
        await asyncio.get_running_loop().run_in_executor(self._notes, count)

    async def _look_up(self, secret: str) -> Visitor | None:
        """Answer what is known; of many that ask at once, one goes and looks."""
        known = self._known.get(secret)
        if known is not None and time.monotonic() - known.at <= FRESH:
            return known.visitor
        task = self._asked.get(secret)
        if task is None:
            task = self._asked[secret] = asyncio.create_task(self._ask(secret))
            task.add_done_callback(lambda _: self._asked.pop(secret, None))
        return await asyncio.shield(task)

    async def _ask(self, secret: str) -> Visitor | None:
        visitor = await asyncio.get_running_loop().run_in_executor(self._lookups, sessions.of_bearer, secret)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[secret] = Known(visitor, time.monotonic())
        return visitor

    def _note_use(self, visitor: Visitor) -> None:
        """Note that a token is used, at most once a minute, and let nobody wait for it."""
        now = time.monotonic()
        if not visitor.token_digest or now - self._noted.get(visitor.token_digest, -NOTE_EVERY) < NOTE_EVERY:
            return
        if len(self._noted) >= MAX_KNOWN:
            self._noted.clear()
        self._noted[visitor.token_digest] = now
        self._notes.submit(_logged, functools.partial(tokens.note_use, visitor.token_digest))


def _logged(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        logger.warning("the use of a token could not be noted", exc_info=True)
