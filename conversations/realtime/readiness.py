"""Determine which part of this server is not ready, and why. Used by `/readyz`; checked at most once a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from django.db import connection

from conversations.core import db_threads, schema_state
from conversations.core.background_loop import take_error
from conversations.core.db_threads import DatabaseThreads
from conversations.core.status import OK

if TYPE_CHECKING:
    from conversations.realtime.server_runtime import ServerRuntime

FRESH = 1.0  # seconds an answer is good for
PATIENCE = 2.0  # seconds the database may take
# Parts that pages and doors do without, and that go on by themselves: told, but no reason to send nobody here.
HINTS = ("layer", "redis", "recorder", "agents", "record", "alerts", "retention", "export", "signing", "version")


class Readiness:
    """The parts by name: `ok`, or what is wrong. Checks run in a separate thread, so that an unresponsive database
    blocks nothing."""

    def __init__(self, runtime: ServerRuntime) -> None:
        self._runtime = runtime
        self._pool = DatabaseThreads("readiness")
        self._looked_at = float("-inf")
        self._database = ("", "")
        self._looking: asyncio.Future[None] | None = None
        self._is_migrated = False
        self._newer = ""  # why this process is too old

    async def parts(self) -> dict[str, str]:
        """Return every part's state."""
        await self._look()
        runtime = self._runtime
        database, migrations = self._database
        parts = {"server": OK if runtime.is_ready else runtime.state, "database": database, "migrations": migrations}
        if runtime.is_ready:
            parts["writer"] = runtime.writer.state
        if db_threads.damage:  # who needs no such page is served
            parts["record"] = f"damaged: {db_threads.damage[-1]}. Run `switchboard verify`"
        if self._newer:
            parts["version"] = self._newer
        if (layer := runtime.broadcast_listener.state) is not None:
            parts["layer"] = layer
        return parts | {name: state() for name, state in runtime.further_parts.items()}

    async def _look(self) -> None:
        """Query the database, one check at a time; report a check that does not finish."""
        if time.monotonic() - self._looked_at < FRESH:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().run_in_executor(self._pool, self._ask)
            self._looking.add_done_callback(take_error)
        try:
            await asyncio.wait_for(asyncio.shield(self._looking), PATIENCE)
        except TimeoutError:
            self._database = (f"no answer within {PATIENCE:.0f} s", "unknown: the database does not respond")
        except Exception as error:
            self._database = (str(error), "unknown: the database does not respond")
        self._looked_at = time.monotonic()

    def _ask(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        self._is_migrated = self._is_migrated or not schema_state.is_behind()
        self._newer = schema_state.newer_warning()
        self._database = (OK, OK if self._is_migrated else "waiting for migrations: run `switchboard migrate`")


def not_ready(parts: dict[str, str]) -> list[str]:
    """Return the parts whose failure means that no requests should be sent to this node."""
    return [name for name, state in parts.items() if state != OK and name not in HINTS]
