"""The files of a data directory that a record needs beside its database. `migrate-database` takes them along."""

from pathlib import Path

from conversations.core import private_file
from conversations.core.errors import Conflict
from conversations.redaction import journal

KEYS = "keys"
SECRET = "secret"


def copy(source: Path, target: Path, *, secret: str) -> list[Path]:
    """Write the secret key, and copy the keys that sign the record and the journal of redactions, each readable by its
    owner alone. Return the files made. Raises Conflict where the target has another one of the same name, or the
    key could not be read back, and OSError; then none is made."""
    if secret != secret.strip():
        raise Conflict("SWITCHBOARD_SECRET_KEY begins or ends with white space, which a file of it cannot keep")
    contents = {target / SECRET: secret.encode()}
    for path in (source / journal.NAME, *sorted((source / KEYS).glob("*"))):
        if path.is_file():
            contents[target / path.relative_to(source)] = path.read_bytes()
    missing = [path for path, content in contents.items() if not _is_there(path, content)]
    made: list[Path] = []
    try:
        for path in missing:
            private_file.create(path, contents[path])
            made.append(path)
    except OSError:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    return made


def _is_there(path: Path, content: bytes) -> bool:
    if not path.exists():
        return False
    if path.read_bytes().strip() != content.strip():
        raise Conflict(f"the file {path} differs from that of this record: move it away first")
    return True
