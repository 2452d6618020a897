"""Files that only their owner may read, there whole or not at all: processes start together, and disks are full."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


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
    """Give a file to write; put it at `path`, also in place of another one, if the block ends without an error. A link
    stays, and its file is replaced; a device or a pipe is written to. Raises OSError."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    with _draft_of(path) as (draft, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        draft.replace(path)


@contextmanager
def _draft_of(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield draft, file
    finally:
        draft.unlink(missing_ok=True)
