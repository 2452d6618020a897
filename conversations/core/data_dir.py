"""The data directory: which process holds it, and the address of that process's local endpoint (its door)."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conversations.core.errors import Conflict, Unavailable

LOOK, USE = "look.lock", "use.lock"  # held while looking who holds the directory, and by commands on PostgreSQL
HELD = "held"  # code of Unavailable: another process holds the directory


@contextmanager
def hold(data_dir: Path) -> Iterator[None]:
    """Hold the directory for this process, until it ends. Raises Unavailable if another process does."""
    with _opened(data_dir, "lock") as descriptor:
        with file_lock(data_dir, LOOK):
            _take(descriptor, data_dir)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield


def require_unheld(data_dir: Path) -> None:
    """Raise Unavailable if another process holds the directory. Who looks is never taken for a holder."""
    with file_lock(data_dir, LOOK), _opened(data_dir, "lock") as descriptor:
        _take(descriptor, data_dir)


def _take(descriptor: int, data_dir: Path) -> None:
    if not _lock_now(descriptor, fcntl.LOCK_EX):
        holder = os.pread(descriptor, 40, 0).decode(errors="replace").strip() or "?"
        raise Unavailable(f"{data_dir} is in use by another Switchboard (process {holder})", code=HELD)


@contextmanager
def use(data_dir: Path) -> Iterator[None]:
    """Write to the record from a command, beside a server and other commands: PostgreSQL takes many writers. Raises
    Conflict while the record is moved: what came later would be lost."""
    with _opened(data_dir, USE) as descriptor:
        if not _lock_now(descriptor, fcntl.LOCK_SH):
            raise Conflict(f"`switchboard migrate-database` is copying the record of {data_dir}")
        yield


@contextmanager
def unused(data_dir: Path) -> Iterator[None]:
    """Keep commands of `use` out. Raises Conflict while there are some."""
    with _opened(data_dir, USE) as descriptor:
        if not _lock_now(descriptor, fcntl.LOCK_EX):
            raise Conflict(f"`switchboard import` or `play` is writing the record of {data_dir}")
        yield


@contextmanager
def file_lock(data_dir: Path, name: str) -> Iterator[None]:
    """Wait for a lock file in the directory and hold it: one process of those that share the directory."""
    with _opened(data_dir, name) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _lock_now(descriptor: int, mode: int) -> bool:
    """Take the lock of an open file, shared or alone, and return whether nobody has it otherwise."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(data_dir: Path, name: str) -> Iterator[int]:
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(data_dir / name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_door(data_dir: Path, url: str, token: str) -> None:
    """Write the holder's local address and a one-use token for it; readable only by the owner."""
    draft = data_dir / "door.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"url": url, "token": token}, file)
    draft.replace(data_dir / "door.json")


def read_door(data_dir: Path) -> tuple[str, str]:
    """Return (url, one-use token) of the holder. Raises Unavailable if there is none."""
    try:
        door = json.loads((data_dir / "door.json").read_text())
        return door["url"], door["token"]
    except (FileNotFoundError, ValueError, KeyError):
        raise Unavailable(f"no door.json in {data_dir}: is the server still starting?", code="no_door") from None
