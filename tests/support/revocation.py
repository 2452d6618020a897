"""Tokens of a running server, made and revoked by another process that rings nobody."""

from __future__ import annotations

import threading
import time

from tests.support.doors import Caller
from tests.support.live import Server, until

LAW = 1.0  # seconds after which nothing may come (law H)
IMPORTS = (
    "import time\nfrom conversations.access.accounts import tokens\nfrom conversations.core.principals import SYSTEM"
)


def printed(server: Server, line: str) -> str:
    """Print what a line of Python gives in a process of its own: on SQLite it reaches the server by the file alone."""
    return server.command("shell", "--no-imports", "-c", f"{IMPORTS}\n{line}").split()[-1]


def holder(server: Server, name: str, role: str = "admin", agent: str = "") -> Caller:
    """Make a token."""
    return Caller(server, printed(server, f"print(tokens.make_token(SYSTEM, {name!r}, {role!r}, agent={agent!r}))"))


def wait_for_use(server: Server, name: str) -> None:
    """Return once the server has let a token in that was never used before."""
    used = f"SELECT 1 FROM conversations_token WHERE name='{name}' AND last_used_at IS NOT NULL"
    until(lambda: server.rows(used), what=f"the first use of {name}")


def revoke(server: Server, name: str) -> float:
    """Revoke it there; return when that was committed, by the clock that all processes share."""
    return float(printed(server, f"tokens.revoke_token(SYSTEM, {name!r})\nprint(time.monotonic())"))


def rotate(server: Server, name: str, role: str = "admin", agent: str = "") -> float:
    """Revoke it there and make another of its name; return when that was committed."""
    made = f"tokens.make_token(SYSTEM, {name!r}, {role!r}, agent={agent!r})"
    return float(printed(server, f"tokens.revoke_token(SYSTEM, {name!r})\n{made}\nprint(time.monotonic())"))


def pause_until(moment: float) -> None:
    """Let time pass: a law about a second is tested by what happens after one."""
    threading.Event().wait(moment - time.monotonic())
