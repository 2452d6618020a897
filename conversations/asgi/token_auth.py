"""Authenticate bearer tokens, with at most two database queries per second for each token."""

import asyncio
import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.utils import timezone

from conversations.access import authentication, origin_check, permissions
from conversations.access.accounts import command_tokens, tokens
from conversations.access.accounts.command_tokens import IDLE_S
from conversations.access.audit import refusal_counter
from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.core import principals
from conversations.core.background_loop import take_error
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import NotAllowed, NotSignedIn
from conversations.core.recently_used import RecentlyUsed

logger = logging.getLogger(__name__)

FRESH = 0.5  # seconds an answer is good for
NOTE_EVERY = 60.0  # seconds between two notes that a token is used
MAX_TOKENS = 1_000  # remembered of each kind: given out here, good, refused
MAX_SECRET = 200  # characters; ours have 46, and what is asked for is remembered


class CachedCaller(NamedTuple):
    """A result and the time at which it was loaded."""

    caller: Caller | None
    at: float


class TokenAuthenticator:
    """The tokens of one server: those in the table, and those this process issued at its own endpoint."""

    def __init__(self) -> None:
        self._accepted = RecentlyUsed[CachedCaller](MAX_TOKENS, IDLE_S)
        self._refused = RecentlyUsed[CachedCaller](MAX_TOKENS, IDLE_S)  # apart, so that guesses push no good one out
        self._pending_lookups: dict[str, asyncio.Task[Caller | None]] = {}
        self._import_bearers = RecentlyUsed[Caller](MAX_TOKENS, IDLE_S)
        self._noted = RecentlyUsed[float](MAX_TOKENS, NOTE_EVERY)  # by digest, when a use was noted last
        self._lookups = DatabaseThreads("bearers")
        self._notes = DatabaseThreads("bearers-notes")  # these write: a lock they wait for holds no look-up up

    def give(self, name: str) -> str:
        """Issue a token for `import:NAME`. It is valid until this process ends, it is unused for an hour, returned or
        revoked. Raises Busy when 1,000 of them are in use."""
        secret = secrets.token_urlsafe(32)
        principal = principals.import_principal(name)
        token = command_tokens.issue(principal.name)
        self._import_bearers.put(secret, Caller(principal, permissions.ADMIN, command_token=token))
        return secret

    def take_back(self, secret: str) -> bool:
        """End a token that was issued here; return whether it existed."""
        caller = self._import_bearers.get(secret)
        if caller is None or caller.command_token is None:
            return False
        self._import_bearers.drop(secret)
        caller.command_token.is_revoked = True
        return True

    @contextmanager
    def holding(self, scope: route.Scope) -> Iterator[None]:
        """Keep the token of a request that may last for hours from expiring in the meantime."""
        secret = route.bearer(scope)
        caller = self._import_bearers.get(secret)
        token = caller.command_token if caller is not None else None
        if token is None:
            yield
            return
        token.requests += 1
        try:
            with self._import_bearers.hold(secret):
                yield
        finally:
            token.requests -= 1
            token.used_at = timezone.now()

    async def caller(self, scope: route.Scope, verb: str) -> Caller:
        """Return the caller of a request by its token; of an agent's, the permissions depend on the target. Raises
        NotSignedIn without a valid token, NotAllowed without the permission. Refusals are counted for the audit log."""
        secret = route.bearer(scope)
        caller = None
        if secret:
            caller = self._given_out(secret) or await self.look_up(secret)
        if caller is None:
            await self._count(scope, verb, "door", "invalid or revoked token")
            raise NotSignedIn("send Authorization: Bearer with a valid token")
        self._note_use(caller)
        if not caller.agent and not permissions.has_permission(caller.roles, verb):
            raise await self.refuse(scope, verb, caller)
        return caller

    def _given_out(self, secret: str) -> Caller | None:
        """Return the caller to whom a token was issued here, if it is still valid."""
        caller = self._import_bearers.get(secret)
        if caller is None or (token := caller.command_token) is None:
            return None
        if token.is_revoked:
            self._import_bearers.drop(secret)
            return None
        token.used_at = timezone.now()
        return caller

    async def refuse(self, scope: route.Scope, verb: str, caller: Caller, what: str = "") -> NotAllowed:
        """Count a refusal and return the error to raise."""
        await self._count(scope, verb, str(caller.principal), "not allowed")
        return NotAllowed(f"{caller.principal} may not {verb}{what and f' {what}'}")

    async def _count(self, scope: route.Scope, verb: str, target: str, reason: str) -> None:
        address = origin_check.address_of(scope)
        await self._notes.run(refusal_counter.record_refusal, address, verb, target, reason=reason)

    async def look_up(self, secret: str) -> Caller | None:
        """Return the caller of a token in the table, None without one; of many simultaneous requests, only one queries
        the database."""
        if len(secret) > MAX_SECRET:
            return None
        cached = self._accepted.get(secret) or self._refused.get(secret)
        if cached is not None and time.monotonic() - cached.at <= FRESH:
            return cached.caller
        task = self._pending_lookups.get(secret)
        if task is None:
            task = self._pending_lookups[secret] = asyncio.create_task(self._ask(secret))
            task.add_done_callback(lambda _: self._pending_lookups.pop(secret, None))
            task.add_done_callback(take_error)
        return await asyncio.shield(task)

    async def _ask(self, secret: str) -> Caller | None:
        caller = await self._lookups.run(authentication.caller_from_token, secret)
        memory, other = (self._refused, self._accepted) if caller is None else (self._accepted, self._refused)
        other.drop(secret)
        memory.put(secret, CachedCaller(caller, time.monotonic()))
        return caller

    def _note_use(self, caller: Caller) -> None:
        """Record the use of a token, at most once a minute, without delaying the request."""
        now = time.monotonic()
        if not caller.token_digest or now - (self._noted.get(caller.token_digest) or -NOTE_EVERY) < NOTE_EVERY:
            return
        self._noted.put(caller.token_digest, now)
        self._notes.submit(_logged, functools.partial(tokens.note_use, caller.token_digest))


def _logged(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        logger.warning("the use of a token could not be recorded", exc_info=True)
