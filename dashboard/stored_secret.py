"""The secret that signs sessions: the one of the settings, or else one that is generated into the data directory."""

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from dashboard.config import MIN_SECRET, Config


def secret_key(config: Config) -> str:
    """Return the configured secret, else the one kept in the data directory (made once, mode 0600)."""
    if config.secret_key:
        return config.secret_key
    path = config.data_dir / "secret"
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        _generate_secret(path)
    secret = path.read_text().strip()
    if len(secret) < MIN_SECRET:
        sys.exit(
            f"{path} must contain at least {MIN_SECRET} characters; it has {len(secret)}. Put the file back from a"
            " copy, or remove it: a new secret is generated, and everybody has to sign in again"
        )
    return secret


def _generate_secret(path: Path) -> None:
    """Make the file with its content at once: processes may start together, and the disk may be full."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
