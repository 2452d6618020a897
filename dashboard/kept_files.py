"""The files of a data directory that a record needs beside its database. `migrate-database` takes them along."""

from pathlib import Path

from conversations.core import private_file
from conversations.core.errors import Conflict
from conversations.redaction import journal

KEYS = "keys"


def copy(source: Path, target: Path, *, with_secret: bool) -> list[Path]:
    """Copy the secret, the keys that sign the record, and the journal of redactions, each readable by its owner alone.
    Return the files made. Raises Conflict where the target has another one of the same name, and OSError; then none is
    made."""
    names = ["secret"] * with_secret + [journal.NAME]
    names += [f"{KEYS}/{path.name}" for path in sorted((source / KEYS).glob("*")) if path.is_file()]
    missing = [name for name in names if (source / name).is_file() and not _is_there(source / name, target / name)]
    made: list[Path] = []
    try:
        for name in missing:
            private_file.create(target / name, (source / name).read_bytes())
            made.append(target / name)
    except OSError:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    return made


def _is_there(source: Path, target: Path) -> bool:
    if not target.exists():
        return False
    if target.read_bytes() != source.read_bytes():
        raise Conflict(f"the file {target} differs from {source}: move it away first")
    return True
