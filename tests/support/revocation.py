"""Tokens of a running server, made and revoked in its database: as another process would that rings nobody."""

from __future__ import annotations

import sqlite3
import threading
import time

from conversations.access.accounts import one_time_secret, tokens
from tests.support.doors import Caller
from tests.support.live import Server

LAW = 1.0  # seconds after which nothing may come (law H)


def execute(server: Server, sql: str, *values: str) -> None:
    """Change the database as another process would that rings nobody."""
    with sqlite3.connect(server.data_dir / "switchboard.sqlite3", timeout=60) as database:
        database.execute(sql, values)


def holder(server: Server, name: str, role: str = "admin", agent: str = "") -> Caller:
    """Make a token without starting a process."""
    words = one_time_secret.make(tokens.PREFIX)
    execute(
        server,
        "INSERT INTO conversations_token (name,role,agent,digest,created_by,created_at)"
        " VALUES (?,?,?,?,'system','2026-01-01 00:00:00')",
        name,
        role,
        agent,
        one_time_secret.digest(words),
    )
    return Caller(server, words)


def revoke(server: Server, name: str) -> float:
    """Revoke it there; return when that was committed."""
    execute(server, "UPDATE conversations_token SET revoked_at='2026-01-01 00:00:00' WHERE name=?", name)
    return time.monotonic()


def pause_until(moment: float) -> None:
    """Let time pass: a law about a second is tested by what happens after one."""
    threading.Event().wait(moment - time.monotonic())
