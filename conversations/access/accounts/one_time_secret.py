"""Secrets shown once: only their digest is stored. Used for sign-in links and tokens."""

import hashlib
import secrets


def make(prefix: str = "") -> str:
    """Return a secret of 256 random bits, safe in a URL."""
    return prefix + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret, as the database stores it; a random secret needs no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
