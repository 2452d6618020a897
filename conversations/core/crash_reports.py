"""Crashes of the interpreter: the stacks of all threads, in a file in the data directory.

Used by `serve`, `record` and `runagents`; the next process that starts there reports the crash, in the log and on the
operations page.
"""

import faulthandler
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

logger = logging.getLogger(__name__)

FOLDER = "crashes"  # of the data directory: a file for each process, empty unless it crashed
RECENT_S = 7 * 24 * 3600.0  # seconds for which a crash is reported at every start
MAX_REPORTS = 10  # files kept, and crashes reported

_earlier_reports: list[str] = []


@contextmanager
def recording(data_dir: Path, command: str) -> Iterator[None]:
    """Write the stacks if this process crashes; report earlier crashes. `command` is part of the file's name."""
    folder = data_dir / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _earlier_reports[:] = _earlier(folder)
    for report in _earlier_reports:
        logger.error("%s", report)
    path = folder / f"{command}-{os.getpid()}-{time.time_ns()}.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # as long as it lives
    faulthandler.enable(descriptor)
    try:
        yield
    finally:
        faulthandler.disable()
        path.unlink(missing_ok=True)
        os.close(descriptor)


def recent_crashes() -> list[str]:
    """Return the recent crashes that this process found at its start, newest first, as text for people."""
    return list(_earlier_reports)


def _earlier(folder: Path) -> list[str]:
    """Read the files of dead processes; empty ones are removed, and so are the oldest crashes."""
    crashes = sorted(filter(_has_stacks, folder.glob("*.txt")), key=_crashed_at, reverse=True)
    for path in crashes[MAX_REPORTS:]:
        path.unlink(missing_ok=True)
    return [_read_text(path) for path in crashes[:MAX_REPORTS] if time.time() - _crashed_at(path) < RECENT_S]


def _has_stacks(path: Path) -> bool:
    """Return whether the file's process crashed; if not, the file is removed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_size:
            return True
        path.unlink(missing_ok=True)
    except BlockingIOError:  # it lives
        return False
    finally:
        os.close(descriptor)
    return False


def _crashed_at(path: Path) -> float:
    return path.stat().st_mtime


def _read_text(path: Path) -> str:
    with path.open(errors="replace") as file:
        reason = file.readline(200).strip()
    at = datetime.fromtimestamp(_crashed_at(path), UTC)
    return (
        f"{path.name.partition('-')[0]} crashed at {at:%Y-%m-%d %H:%M:%S} UTC ({reason}). Stack traces:"
        f" {FOLDER}/{path.name} in the data directory. Delete that file to dismiss this warning."
    )
