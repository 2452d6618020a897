"""Check whether the tokens behind a batch are still valid, in the transaction that stores it (law H).

An endpoint checks at most twice a second; a token may be revoked between that check and the commit. `append` checks
for the writer once the conversations are locked, and so learns with the same query which agents the tokens are of.
"""

from collections.abc import Collection, Sequence

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.errors import NotSignedIn
from conversations.events.log.lock_waits import LockedElsewhere
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import marks, rows_of

TOKEN = "token:"


class TokenRevoked(Exception):
    """Tokens of a batch were revoked: the transaction must not commit. `principals` names them."""

    def __init__(self, principals: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(principals)))
        self.principals = principals


def agents_of_good_tokens(
    cursor: CursorWrapper, events: Sequence[NewEvent], *, skips: bool = False
) -> dict[str, str | None]:
    """Return the agent of each token among the principals, by the token's name: empty for one that is not an agent's,
    None for one that does not exist. Raises `TokenRevoked` if one is revoked; one query over the distinct ones.

    On PostgreSQL their rows are locked until the commit, so that a revocation comes before or after it, never in
    between. With `skips`, raises `LockedElsewhere` for rows that are being changed, instead of waiting.
    """
    names = sorted(p.removeprefix(TOKEN) for p in {e.principal for e in events} if p.startswith(TOKEN))
    if not names:
        return {}
    lock = "" if cursor.db.vendor == "sqlite" else f" ORDER BY id FOR SHARE{' SKIP LOCKED' * skips}"
    select = f"SELECT name,revoked_at,agent FROM conversations_token WHERE name IN ({marks(len(names))}){lock}"
    rows = rows_of(cursor, select, names)
    if skips and lock and len(rows) < len(names):
        _refuse_held(cursor, set(names) - {name for name, _, _ in rows})
    if gone := frozenset(TOKEN + name for name, revoked_at, _ in rows if revoked_at is not None):
        raise TokenRevoked(gone)
    return dict.fromkeys(names) | {name: agent for name, _, agent in rows}


def require_good_tokens(events: Sequence[NewEvent]) -> None:
    """Raise `NotSignedIn` if a token among the principals is revoked, after the conversations are locked."""
    try:
        with connection.cursor() as cursor:
            agents_of_good_tokens(cursor, events)
    except TokenRevoked:
        raise NotSignedIn("this token has been revoked; nothing was stored") from None


def _refuse_held(cursor: CursorWrapper, unseen: Collection[str]) -> None:
    """Raise `LockedElsewhere` for those tokens that exist but could not be locked."""
    cursor.execute(f"SELECT name FROM conversations_token WHERE name IN ({marks(len(unseen))})", sorted(unseen))
    if held := frozenset(TOKEN + name for (name,) in cursor.fetchall()):
        raise LockedElsewhere(principals=held)
