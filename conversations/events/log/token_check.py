"""Whether the tokens behind a batch are still good, asked in the transaction that stores it (law H).

A door asks at most twice a second; between its look and the commit a token may be revoked. The writer rides this along.
"""

from collections.abc import Collection, Sequence

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper

from conversations.core.errors import NotSignedIn
from conversations.events.log.lock_waits import LockedElsewhere
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import marks

TOKEN = "token:"


class TokenRevoked(Exception):
    """Tokens of a batch are gone: the transaction must not commit. `principals` names them."""

    def __init__(self, principals: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(principals)))
        self.principals = principals


def reject_revoked_tokens(events: Sequence[NewEvent], *, skips: bool = False) -> None:
    """Raise `TokenRevoked` when a token among the principals is revoked: one query over the distinct ones.

    On PostgreSQL their rows are held until the commit, so that a revocation comes before or after it, never between.
    `skips`: raise `LockedElsewhere` for those that somebody changes now, instead of waiting.
    """
    names = sorted(p.removeprefix(TOKEN) for p in {e.principal for e in events} if p.startswith(TOKEN))
    if not names:
        return
    connection = connections[DEFAULT_DB_ALIAS]
    lock = "" if connection.vendor == "sqlite" else f" ORDER BY id FOR SHARE{' SKIP LOCKED' * skips}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT name,revoked_at FROM conversations_token WHERE name IN ({marks(len(names))}){lock}", names
        )
        rows = cursor.fetchall()
        if skips and lock and len(rows) < len(names):
            _refuse_held(cursor, set(names) - {name for name, _ in rows})
    if gone := frozenset(TOKEN + name for name, revoked_at in rows if revoked_at is not None):
        raise TokenRevoked(gone)


def require_good_tokens(events: Sequence[NewEvent]) -> None:
    """Raise `NotSignedIn` when a token among the principals is revoked, after the conversations are locked."""
    try:
        reject_revoked_tokens(events)
    except TokenRevoked:
        raise NotSignedIn("this token has been revoked; nothing was stored") from None


def _refuse_held(cursor: CursorWrapper, unseen: Collection[str]) -> None:
    """Raise `LockedElsewhere` for those among tokens that could not be locked which are there all the same."""
    cursor.execute(f"SELECT name FROM conversations_token WHERE name IN ({marks(len(unseen))})", sorted(unseen))
    if held := frozenset(TOKEN + name for (name,) in cursor.fetchall()):
        raise LockedElsewhere(principals=held)
