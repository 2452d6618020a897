"""The fence of a run (law F): a worker's events are stored only while the worker still holds the run."""

from collections.abc import Collection, Sequence

from django.db.backends.utils import CursorWrapper

from conversations.core.errors import Fenced
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import marks

# One row, however many runs: `sqlite3` releases the GIL at each. PostgreSQL needs the types of the values.
_STILL_HELD = """WITH held(id,attempt) AS (VALUES {}) SELECT count(*) FROM held CROSS JOIN conversations_run r
WHERE r.id=held.id AND r.attempt=CAST(held.attempt AS integer) AND r.status='running'"""


def check_fence(cursor: CursorWrapper, batch: Sequence[NewEvent]) -> None:
    """Raise `Fenced` if a run of the batch is no longer running in its attempt.

    Called with the conversations locked. Taking over a run requires the same lock, so the result is valid until the
    commit.
    """
    held = {(e.fence_run or e.run, e.attempt) for e in batch if e.attempt is not None}
    if not held:
        return
    pairs = sorted(held, key=str)
    padded = [*pairs, *pairs[-1:] * ((1 << (len(pairs) - 1).bit_length()) - len(pairs))]  # few different statements
    values = [value for pair in padded for value in pair]
    cursor.execute(_STILL_HELD.format(",".join(["(%s,%s)"] * len(padded))), values)
    if cursor.fetchone()[0] != len(padded):
        _raise(cursor, held)


def _raise(cursor: CursorWrapper, held: Collection[tuple[str | None, int | None]]) -> None:
    runs = sorted({run for run, _ in held if run})
    cursor.execute(
        f"SELECT id,attempt FROM conversations_run WHERE status='running' AND id IN ({marks(len(runs))})", runs
    )
    run, attempt = min(set(held) - set(cursor.fetchall()), key=str)
    raise Fenced(f"run {run} is no longer running in attempt {attempt}")
