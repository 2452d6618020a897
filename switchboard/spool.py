"""Messages on disk while the server is away: in order, each synced before it is acknowledged, bounded.

A folder may be shared by the processes of one agent: each locks a slot of its own (`0.lock`, `0.jsonl`), and takes over
what a process that was killed left in another. `0.jsonl` is one message a line, as it is sent. What the server refuses
is moved to `0.refused.jsonl`, one `{"at", "error", "message"}` a line, for people to read; nothing removes it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO
from weakref import WeakSet

from switchboard.errors import Refused, SpoolFull

_log = logging.getLogger("switchboard")
_open_files: WeakSet[IO[bytes]] = WeakSet()  # of the spools of this process

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _close_inherited() -> None:
    """Close the files of the process that forked: while a copy of a lock is open, its slot is taken."""
    for file in list(_open_files):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


class Spool:
    """One process's queue on disk. Not safe to use from two threads at once: its owner holds a lock."""

    compact_at = 1 << 20  # bytes sent and still in the file

    def __init__(self, folder: Path, *, max_bytes: int, max_messages: int) -> None:
        """Take a free slot, and what was left in any other free one. Raises OSError when the folder cannot be used."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.messages = self.bytes = 0  # that wait
        self._max_bytes, self._max_messages = max_bytes, max_messages
        self._sent = 0  # bytes at the file's start that wait no more
        self._slot, self._lock_file = next(slot for n in count() if (slot := _take(folder / str(n))))
        self._path, self.refused = self._slot.with_suffix(".jsonl"), self._slot.with_suffix(".refused.jsonl")
        self._file = self._open()
        self._recover()
        self.adopt(folder)
        if self.messages:
            _log.warning(
                "%d messages from an earlier process are waiting in %s; they are sent first", self.messages, self._path
            )

    def append(self, line: bytes) -> None:
        """Keep a message, synced. Raises `SpoolFull` at a bound or when the disk takes no more; then it is not kept."""
        if self.messages >= self._max_messages or self.bytes + len(line) + 1 > self._max_bytes:
            raise SpoolFull(
                f"the server is unreachable and {self._path} is full: {self.messages:,} messages, {self.bytes:,} bytes"
            )
        self._append(line + b"\n")
        self.messages, self.bytes = self.messages + 1, self.bytes + len(line) + 1

    def append_all(self, lines: Sequence[bytes]) -> int:
        """Keep the first of several messages, as many as fit, with one sync; return how many. Raises `SpoolFull` when
        the disk takes no more; then none is kept."""
        size = fits = 0
        for line in lines[: max(0, self._max_messages - self.messages)]:
            if self.bytes + size + len(line) + 1 > self._max_bytes:
                break
            size, fits = size + len(line) + 1, fits + 1
        if fits:
            self._append(b"".join(line + b"\n" for line in lines[:fits]))
            self.messages, self.bytes = self.messages + fits, self.bytes + size
        return fits

    def first(self, messages: int, size: int) -> list[bytes]:
        """Read the oldest that wait: up to so many, and up to `size` bytes unless the first alone has more."""
        lines: list[bytes] = []
        with self._path.open("rb") as file:
            file.seek(self._sent)
            for line in file:
                size -= len(line)
                if lines and (size < 0 or len(lines) == messages):
                    break
                lines.append(line[:-1])
        return lines

    def done(self, lines: list[bytes], *, but: Sequence[bytes] = ()) -> None:
        """Forget the oldest, which `first` answered; those in `but` stay the oldest. After a kill they may be sent
        again: their ids keep them one."""
        forgotten = len(lines) - len(but)
        size = sum(len(line) + 1 for line in lines) - sum(len(line) + 1 for line in but)
        if but and forgotten:
            self._write_over(self._sent + size, b"".join(line + b"\n" for line in but))
        self._sent, self.bytes, self.messages = self._sent + size, self.bytes - size, self.messages - forgotten
        if not self.messages:
            self._file.truncate(0)
            self._sent = 0
        elif self._sent > max(self.compact_at, self.bytes):
            self._compact()

    def set_aside(self, line: bytes, refusal: Refused) -> None:
        """Write a refused message down for people, or raise OSError when the disk takes no more: nothing is written."""
        error = {"status": refusal.status, "code": refusal.code, "message": refusal.message, "field": refusal.field}
        record = {"at": datetime.now(UTC).isoformat(), "error": error, "message": _readable(line)}
        with self.refused.open("ab", buffering=0) as file:
            _append_synced(file, json.dumps(record).encode() + b"\n")
        _log.error("the server rejected a stored message (%s: %s); it is in %s", refusal.code, refusal, self.refused)

    def close(self) -> None:
        """Give up the slot. What waits stays on disk for the next process."""
        self._file.close()
        self._lock_file.close()

    def _open(self) -> IO[bytes]:
        file = self._path.open("ab", buffering=0)
        _open_files.add(file)
        if sys.platform != "win32":
            folder = os.open(self._path.parent, os.O_RDONLY)
            os.fsync(folder)  # the file's name must survive too
            os.close(folder)
        return file

    def _append(self, data: bytes) -> None:
        """Write and sync, or leave the file as it was."""
        try:
            _append_synced(self._file, data)
        except OSError as error:
            raise SpoolFull(f"the server is unreachable and {self._path} cannot be written: {error}") from error

    def _recover(self) -> None:
        """Count what waits. A last line that was torn by a kill was never acknowledged: it is reported and cut off."""
        whole = 0
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    _log.warning(
                        "%s ends in the middle of a message (%d bytes, never acknowledged)", self._path, len(line)
                    )
                    self._file.truncate(whole)
                    break
                whole += len(line)
                self.messages, self.bytes = self.messages + 1, self.bytes + len(line)

    def adopt(self, folder: Path) -> None:
        """Move what waits in a folder's free slots into this one; stopped midway it waits in both, under the same
        ids."""
        for other in sorted(folder.glob("*.jsonl")):
            slot = other.with_suffix("")
            if slot == self._slot or not slot.name.isdigit() or not other.stat().st_size:
                continue
            if taken := _take(slot):
                with taken[1]:
                    self._move(other)

    def _move(self, other: Path) -> None:
        whole, mark, torn = other.read_bytes().rpartition(b"\n")
        try:
            self._append(whole + mark)
        except SpoolFull as error:
            _log.error("the messages in %s could not be loaded: %s", other, error)
            return
        if torn:
            _log.warning("%s ends in the middle of a message (%d bytes, never acknowledged)", other, len(torn))
        self.messages, self.bytes = self.messages + (whole + mark).count(b"\n"), self.bytes + len(whole + mark)
        other.write_bytes(b"")

    def _write_over(self, offset: int, data: bytes) -> None:
        """Write where sent messages are: this takes no space of a disk that may be full."""
        with self._path.open("r+b", buffering=0) as file:
            file.seek(offset)
            file.write(data)
            os.fsync(file.fileno())

    def _compact(self) -> None:
        """Write what waits into a new file and put it in the old one's place. A full disk leaves the file as it is."""
        new = self._slot.with_suffix(".new")
        try:
            with self._path.open("rb") as file, new.open("wb") as copy:
                file.seek(self._sent)
                shutil.copyfileobj(file, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
        except OSError as error:
            _log.warning("%s keeps %d bytes that were sent: %s", self._path, self._sent, error)
            new.unlink(missing_ok=True)
            return
        self._file.close()
        new.replace(self._path)
        self._file, self._sent = self._open(), 0


def _append_synced(file: IO[bytes], data: bytes) -> None:
    """Write and sync, or leave the file as it was and raise OSError. The file is not buffered."""
    before = os.fstat(file.fileno()).st_size
    try:
        if file.write(data) != len(data):
            raise OSError("the disk is full")
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise


def _take(slot: Path) -> tuple[Path, IO[bytes]] | None:
    """Lock a slot; None when a living process holds it."""
    held = slot.with_suffix(".lock").open("ab")
    _open_files.add(held)
    try:
        _lock(held)
    except (BlockingIOError, PermissionError):
        held.close()
        return None
    return slot, held


def _readable(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return line.decode(errors="replace")
