"""Check whether the tokens behind a batch are still valid, in the transaction that stores it (law H).

An endpoint checks at most twice a second; a token may be revoked between that check and the commit. The writer passes
this check as `in_same_transaction`.
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
    """Tokens of a batch were revoked: the transaction must not commit. `principals` names them."""

    def __init__(self, principals: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(principals)))
        self.principals = principals


def reject_revoked_tokens(events: Sequence[NewEvent], *, skips: bool = False) -> None:
    """Raise `TokenRevoked` if a token among the principals is revoked, with one query over the distinct ones.

    On PostgreSQL their rows are locked until the commit, so that a revocation comes before or after it, never in
    between. With `skips`, raises `LockedElsewhere` for rows that are being changed, instead of waiting.
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
    """Raise `NotSignedIn` if a token among the principals is revoked, after the conversations are locked."""
    try:
        reject_revoked_tokens(events)
    except TokenRevoked:
        raise NotSignedIn("this token has been revoked; nothing was stored") from None


def _refuse_held(cursor: CursorWrapper, unseen: Collection[str]) -> None:
    """Raise `LockedElsewhere` for those tokens that exist but could not be locked."""
    cursor.execute(f"SELECT name FROM conversations_token WHERE name IN ({marks(len(unseen))})", sorted(unseen))
    if held := frozenset(TOKEN + name for (name,) in cursor.fetchall()):
        raise LockedElsewhere(principals=held)
