"""The files of a data directory that a record needs beside its database. `migrate-database` takes them along."""

import os
from pathlib import Path

from conversations.core.errors import Conflict
from conversations.redaction import journal

KEYS = "keys"


def copy(source: Path, target: Path, *, with_secret: bool) -> list[Path]:
    """Copy the secret, the keys that sign the record, and the journal of redactions, each readable by its owner alone.
    Return the files made. Raises Conflict where the target has another one of the same name; then none is made."""
    names = ["secret"] * with_secret + [journal.NAME]
    names += [f"{KEYS}/{path.name}" for path in sorted((source / KEYS).glob("*")) if path.is_file()]
    missing = [name for name in names if (source / name).is_file() and not _is_there(source / name, target / name)]
    return [_copy_file(source / name, target / name) for name in missing]


def _is_there(source: Path, target: Path) -> bool:
    if not target.exists():
        return False
    if target.read_bytes() != source.read_bytes():
        raise Conflict(f"the file {target} differs from {source}: move it away first")
    return True


def _copy_file(source: Path, target: Path) -> Path:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(source.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    return target
