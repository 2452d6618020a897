"""The secret that signs sessions: the one of the settings, or else one that is generated into the data directory."""

import secrets
import sys

from conversations.core import private_file
from dashboard.config import MIN_SECRET, Config


def secret_key(config: Config) -> str:
    """Return the configured secret, else the one kept in the data directory (made once, mode 0600)."""
    if config.secret_key:
        return config.secret_key
    path = config.data_dir / "secret"
    if not path.exists():
        private_file.create(path, secrets.token_urlsafe(48).encode())
    secret = path.read_text().strip()
    if len(secret) < MIN_SECRET:
        sys.exit(
            f"{path} must contain at least {MIN_SECRET} characters; it has {len(secret)}. Put the file back from a"
            " copy, or remove it: a new secret is generated, and everybody has to sign in again"
        )
    return secret
