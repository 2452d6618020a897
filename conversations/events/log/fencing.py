"""The fence of a run (law F): what a worker writes is stored only while the run is still its own."""

from collections.abc import Sequence

from django.db.backends.utils import CursorWrapper

from conversations.core.errors import Fenced
from conversations.events.log.records import NewEvent


def check_fence(cursor: CursorWrapper, batch: Sequence[NewEvent]) -> None:
    """Raise `Fenced` when a run of the batch is not running in its attempt any more.

    Called with the conversations locked: whoever takes a run away locks them first, so the answer holds until the
    commit.
    """
    held = {(e.holder or e.run, e.attempt) for e in batch if e.attempt is not None}
    if not held:
        return
    runs = sorted({run for run, _ in held if run})
    marks = ",".join(["%s"] * len(runs))
    cursor.execute(f"SELECT id,attempt FROM conversations_run WHERE status='running' AND id IN ({marks})", runs)
    lost = held - set(cursor.fetchall())
    if lost:
        run, attempt = min(lost, key=str)
        raise Fenced(f"run {run} is no longer running in attempt {attempt}")
