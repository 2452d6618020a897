"""The fence of a run (law F): a worker's events are stored only while the worker still holds the run."""

from collections.abc import Sequence

from django.db.backends.utils import CursorWrapper

from conversations.core.errors import Fenced
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import marks


def check_fence(cursor: CursorWrapper, batch: Sequence[NewEvent]) -> None:
    """Raise `Fenced` if a run of the batch is no longer running in its attempt.

    Called with the conversations locked. Taking over a run requires the same lock, so the result is valid until the
    commit.
    """
    held = {(e.holder or e.run, e.attempt) for e in batch if e.attempt is not None}
    if not held:
        return
    runs = sorted({run for run, _ in held if run})
    cursor.execute(
        f"SELECT id,attempt FROM conversations_run WHERE status='running' AND id IN ({marks(len(runs))})", runs
    )
    lost = held - set(cursor.fetchall())
    if lost:
        run, attempt = min(lost, key=str)
        raise Fenced(f"run {run} is no longer running in attempt {attempt}")
