"""Check whether the tokens behind a batch are still valid, in the transaction that stores it (law H).

An endpoint checks at most twice a second; a token may be revoked between that check and the commit, and another made
under its name. `append` checks for the writer once the conversations are locked, and so learns with the same query
which agents the tokens are of.
"""

from collections.abc import Collection, Sequence

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.errors import NotSignedIn
from conversations.events.log.lock_waits import LockedElsewhere
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import marks, rows_of

TOKEN = "token:"
Holder = tuple[str, str]  # a principal and its credential


class TokenRevoked(Exception):
    """Tokens of a batch were revoked: the transaction must not commit. `holders` are their principals and
    credentials."""

    def __init__(self, holders: frozenset[Holder]) -> None:
        super().__init__(", ".join(sorted({principal for principal, _ in holders})))
        self.holders = holders


def agents_of_good_tokens(
    cursor: CursorWrapper, events: Sequence[NewEvent], *, skips: bool = False
) -> dict[str, str | None]:
    """Return the agent of each token among the principals, by the token's name: empty for one that is not an agent's,
    None for one that does not exist. Raises `TokenRevoked` if one is revoked, or its name belongs to a token with
    another secret; one query over the distinct ones.

    On PostgreSQL their rows are locked until the commit, so that a revocation comes before or after it, never in
    between. With `skips`, raises `LockedElsewhere` for rows that are being changed, instead of waiting.
    """
    holders = {holder for holder in {(e.principal, e.credential) for e in events} if holder[0].startswith(TOKEN)}
    names = sorted({principal.removeprefix(TOKEN) for principal, _ in holders})
    if not names:
        return {}
    lock = "" if cursor.db.vendor == "sqlite" else f" ORDER BY id FOR SHARE{' SKIP LOCKED' * skips}"
    select = f"SELECT name,digest,agent,revoked_at FROM conversations_token WHERE name IN ({marks(len(names))}){lock}"
    rows = rows_of(cursor, select, names)
    if skips and lock and len(rows) < len(names):
        _refuse_held(cursor, set(names) - {name for name, *_ in rows})
    valid = {TOKEN + name: ("", digest) if revoked_at is None else () for name, digest, _, revoked_at in rows}
    if gone := frozenset(holder for holder in holders if holder[1] not in valid.get(holder[0], ("",))):
        raise TokenRevoked(gone)
    return dict.fromkeys(names) | {name: agent for name, _, agent, _ in rows}


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
