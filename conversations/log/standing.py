"""Whether the tokens behind a batch are still good, asked in the transaction that stores it (law H).

A door asks at most twice a second; between its look and the commit a token may be revoked. The writer rides this along.
"""

from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, connections

from conversations.log.events import NewEvent
from conversations.log.rows import marks

TOKEN = "token:"


class TokenRevoked(Exception):
    """Tokens of a batch are gone: the transaction must not commit. `principals` names them."""

    def __init__(self, principals: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(principals)))
        self.principals = principals


def check(events: Sequence[NewEvent]) -> None:
    """Raise `TokenRevoked` when a token among the principals is revoked: one query over the distinct ones.

    On PostgreSQL their rows are held until the commit, so that a revocation comes before or after it, never between.
    """
    names = sorted(p.removeprefix(TOKEN) for p in {e.principal for e in events} if p.startswith(TOKEN))
    if not names:
        return
    connection = connections[DEFAULT_DB_ALIAS]
    lock = "" if connection.vendor == "sqlite" else " ORDER BY id FOR SHARE"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT name,revoked_at FROM conversations_token WHERE name IN ({marks(len(names))}){lock}", names
        )
        found = cursor.fetchall()
    if gone := frozenset(TOKEN + name for name, revoked_at in found if revoked_at is not None):
        raise TokenRevoked(gone)
