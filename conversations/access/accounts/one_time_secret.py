"""Secrets shown once: only their digest is kept. Used for sign-in links and tokens."""

import hashlib
import secrets


def make(prefix: str = "") -> str:
    """Make a secret of 256 random bits, fit for a URL."""
    return prefix + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return the SHA-256 that stands for it in the database; a random secret needs no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
