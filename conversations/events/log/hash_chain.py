"""The hash chain of a conversation (§5): every event's hash covers its bytes and the hash before."""

from hashlib import sha256

SALT = 16  # bytes


def seed(key: str) -> str:
    """Return what comes before seq 1: the SHA-256 of the conversation's id, lower hex."""
    return sha256(key.encode()).hexdigest()


def digest(salt: bytes, body: str) -> str:
    """Return the SHA-256 over salt and body, lower hex. The salt goes when the body is redacted, the digest stays."""
    return sha256(salt + body.encode()).hexdigest()


def link(prev: str, key: str, seq: int, kind: str, at: int, principal: str, event_id: str | None, digest: str) -> str:
    """Return an event's hash: SHA-256 over these, joined by NUL (no column can hold one), lower hex."""
    parts = f"{prev}\0{key}\0{seq}\0{kind}\0{at}\0{principal}\0{event_id or ''}\0{digest}"
    return sha256(parts.encode()).hexdigest()
