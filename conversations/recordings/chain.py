"""The commitments of a history, as an export tells them: digest and hash of one event (design 5)."""

import hashlib

FORMAT = "switchboard/1"


def digest_of(salt: bytes, body: str) -> str:
    """Answer SHA-256 over salt and body, in lower hex."""
    return hashlib.sha256(salt + body.encode()).hexdigest()


def first_of(key: str) -> str:
    """Answer what stands before the first event's hash: SHA-256 of the conversation's id, in lower hex."""
    return hashlib.sha256(key.encode()).hexdigest()


def hash_of(prev: str, key: str, seq: int, kind: str, at: int, principal: str, event_id: str | None, digest: str) -> str:
    """Answer SHA-256 over the columns joined by NUL, in lower hex. Integers are decimal, a null id is empty."""
    columns = (prev, key, str(seq), kind, str(at), principal, event_id or "", digest)
    return hashlib.sha256("\0".join(columns).encode()).hexdigest()
