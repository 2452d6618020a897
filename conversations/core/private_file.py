"""Files that only their owner may read, there whole or not at all: processes start together, and disks are full."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")  # they may lead to a file that a shell's `>>` adds to


def create(path: Path, content: bytes) -> None:
    """Make a file, and its folder, unless there is one already. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _draft_of(path) as (draft, file):
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)


def replace(path: Path, content: bytes) -> None:
    """Put a file in place of another one, so that a loss of power leaves one of the two, whole. Raises OSError."""
    with written_whole(path) as file:
        file.write(content)


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write; put it at `path`, also in place of another one, if the block ends without an error. Behind
    a link, that is the file which the link names. A device or a pipe stays what it is: it gets the content at once.
    Raises OSError."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if _is_special(path):
        with _naming(path), path.open("ab") as device:
            yield device
        return
    target = path.resolve()
    with _naming(path), _draft_of(target) as (draft, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        draft.replace(target)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an error that names none, as of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def _is_special(path: Path) -> bool:
    if str(path).startswith(STREAMS):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def _draft_of(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield draft, file
    finally:
        draft.unlink(missing_ok=True)
