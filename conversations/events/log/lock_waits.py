"""Limit how long a transaction of the writer waits for locks. PostgreSQL only: SQLite locks its whole file.

The writer's threads find out whose rows are locked, set those events aside and store the rest; events set aside wait
for their row in a separate thread. All other transactions wait as long as the server's `lock_timeout`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db import OperationalError
from django.db.backends.utils import CursorWrapper

from conversations.core.db_threads import sqlstate
from conversations.core.errors import Busy
from conversations.events.log import sql
from conversations.events.projections import ConversationHead

TIMED_OUT = "55P03"  # PostgreSQL's: a lock was not to be had in time
_EXISTING = "SELECT key FROM conversations_conversation WHERE key=ANY(%s)"


class LockWait(NamedTuple):
    """Whether locked rows are skipped, and how many ms to wait for any other lock."""

    skips: bool
    ms: int


AT_ONCE = LockWait(skips=True, ms=50)
BRIEFLY = LockWait(skips=False, ms=100)


class LockedElsewhere(Exception):
    """Others hold locks on these conversations, or on these principals' tokens; nothing of the batch is stored."""

    def __init__(self, *, keys: frozenset[str] = frozenset(), principals: frozenset[str] = frozenset()) -> None:
        super().__init__(", ".join(sorted(keys | principals)))
        self.keys, self.principals = keys, principals


def is_timeout(error: BaseException) -> bool:
    """Return whether a statement ended because it waited for a lock too long."""
    return sqlstate(error) == TIMED_OUT


def set_lock_timeout(cursor: CursorWrapper, wait: LockWait | None) -> None:
    """Set the lock timeout of this transaction."""
    if wait is not None and cursor.db.vendor == "postgresql":
        cursor.execute(f"SET LOCAL lock_timeout={wait.ms}")


def lock_heads(
    cursor: CursorWrapper, keys: Sequence[str], chained_as: Mapping[str, str], wait: LockWait | None
) -> dict[str, ConversationHead]:
    """Lock conversations like `sql.lock_heads`. Raises `LockedElsewhere`, naming the conversations that `wait`
    skips."""
    if wait is None or not wait.skips or cursor.db.vendor == "sqlite":
        return sql.lock_heads(cursor, keys, chained_as)
    for _ in range(3):
        heads = sql.read_heads(cursor, keys, skips=True)
        if len(heads) == len(keys):
            return heads
        cursor.execute(_EXISTING, [list(keys)])
        existing = {key for (key,) in cursor.fetchall()}
        missing = [key for key in keys if key not in existing]
        if not missing:
            raise LockedElsewhere(keys=frozenset(existing - heads.keys()))
        _make(cursor, missing, chained_as)
    raise Busy("a conversation is being removed: try again later")


def _make(cursor: CursorWrapper, keys: Sequence[str], chained_as: Mapping[str, str]) -> None:
    try:
        sql.make(cursor, keys, chained_as)
    except OperationalError as error:
        if not is_timeout(error):
            raise
        raise LockedElsewhere(keys=frozenset(keys)) from error  # somebody makes one of them, and has not committed
