"""Leases watched by this process's own clock: which were not renewed for a while, whatever the database's clock says.
Called by `lifecycle`; one process, any thread."""

import threading
import time
from collections.abc import Iterable

from conversations.models import Run

_Held = tuple[str, int, int | None]  # a run, its attempt, the end of its lease

_since: dict[_Held, float] = {}
_lock = threading.Lock()


def unrenewed(runs: Iterable[Run], for_s: float) -> list[Run]:
    """Return those of these runs that have had the same lease for so many seconds; the others are watched from now on.

    What is not among the runs any more is forgotten.
    """
    now = time.monotonic()
    with _lock:
        leases = {held: (_since.get(held, now), run) for run in runs for held in [_held(run)]}
        _since.clear()
        _since.update({held: since for held, (since, _) in leases.items()})
        return [run for since, run in leases.values() if now - since >= for_s]


def _held(run: Run) -> _Held:
    return run.id, run.attempt, run.lease_until
