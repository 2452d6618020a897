"""Who a bearer token speaks for, asked of the database at most twice a second for each token."""

import asyncio
import functools
import secrets
import time
from typing import NamedTuple

from conversations import origins, principals, refusals, rights, sessions
from conversations.doors import http
from conversations.errors import NotAllowed, NotSignedIn
from conversations.principals import Principal
from conversations.sessions import Visitor
from conversations.threads import DatabaseThreads

FRESH = 0.5  # seconds an answer is good for
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
        self._given: dict[str, Principal] = {}
        self._pool = DatabaseThreads(1, "bearers")

    def give(self, name: str) -> str:
        """Give out a token for `import:NAME`, good while this process lives."""
        secret = secrets.token_urlsafe(32)
        self._given[secret] = principals.of_import(name)
        return secret

    async def require(self, scope: http.Scope, verb: str) -> Principal:
        """Answer whose token a request carries. Raises NotSignedIn without a good one, NotAllowed without the right.

        Refusals are counted for the audit log.
        """
        secret = http.bearer(scope)
        if (given := self._given.get(secret)) is not None:
            return given
        visitor = await self._look_up(secret) if 0 < len(secret) <= MAX_SECRET else None
        if visitor is None:
            await self._count(scope, verb, "door", "no such token, or revoked")
            raise NotSignedIn("expected Authorization: Bearer with a token that is not revoked")
        if not rights.may(visitor.roles, verb):
            await self._count(scope, verb, str(visitor.principal), "without the right")
            raise NotAllowed(f"{visitor.principal} may not {verb}")
        return visitor.principal

    async def _count(self, scope: http.Scope, verb: str, target: str, reason: str) -> None:
        count = functools.partial(refusals.count, origins.address_of(scope), verb, target, reason=reason)
        await asyncio.get_running_loop().run_in_executor(self._pool, count)

    async def _look_up(self, secret: str) -> Visitor | None:
        known = self._known.get(secret)
        if known is None or time.monotonic() - known.at > FRESH:
            visitor = await asyncio.get_running_loop().run_in_executor(self._pool, sessions.of_bearer, secret)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            known = self._known[secret] = Known(visitor, time.monotonic())
        return known.visitor
