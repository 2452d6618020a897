"""The hash chain of a conversation (§5): every event's hash covers its columns, its body and the previous hash.

Format 2 covers every column that never changes once written. Format 1 left out run, turn and who erased it, and treated
an empty id as no id. A chain that began in format 1 stays valid and continues in format 2; after its first link in
format 2, no link in format 1 is accepted.
"""

from hashlib import sha256
from typing import Any

SALT = 16  # bytes
_V2 = "switchboard/2"

Chained = Any  # a row of the table or a line of an export: both have the columns under the same names


def seed(key: str) -> str:
    """Return the hash before seq 1: the SHA-256 of the conversation's id, lower hex."""
    return sha256(key.encode()).hexdigest()


def digest(salt: bytes, body: str) -> str:
    """Return the SHA-256 over salt and body, lower hex. A redaction removes the salt and keeps the digest."""
    return sha256(salt + body.encode()).hexdigest()


def tombstone_digest(seq: int, erased_by: str | None, body: str) -> str:
    """Return the digest by which `event.redacted` names a tombstone: the SHA-256 over its number, who erased it, and
    what replaces its body, joined by NUL, lower hex."""
    return sha256(f"{_V2} tombstone\0{seq}\0{_marked(erased_by)}\0{body}".encode("utf-8", "replace")).hexdigest()


def link(
    prev: str, key: str, seq: int, kind: str, at: int, principal: str, run: str | None, turn: int | None,
    event_id: str | None, digest: str, erased_by: str | None = None,
) -> str:  # fmt: skip
    """Return an event's hash: SHA-256 over these values, joined by NUL (no column can contain one), lower hex. A text
    that may be null is prefixed with `=`, so that null and empty differ."""
    parts = (
        f"{_V2}\0{prev}\0{key}\0{seq}\0{kind}\0{at}\0{principal}\0{'' if run is None else f'={run}'}"
        f"\0{'' if turn is None else turn}\0{'' if event_id is None else f'={event_id}'}"
        f"\0{'' if erased_by is None else f'={erased_by}'}\0{digest}"
    )
    return sha256(parts.encode()).hexdigest()


def link_v1(
    prev: str, key: str, seq: int, kind: str, at: int, principal: str, event_id: str | None, digest: str
) -> str:
    """Return an event's hash in format 1."""
    parts = f"{prev}\0{key}\0{seq}\0{kind}\0{at}\0{principal}\0{event_id or ''}\0{digest}"
    return sha256(parts.encode()).hexdigest()


def format_of(prev: str, key: str, row: Chained, *, oldest: int = 1, is_tombstone: bool = False) -> int:
    """Return the format in which an event's hash matches the previous one: 2, 1 (if `oldest` allows it), or 0 for none.
    An event that was erased after it was written was hashed without who erased it."""
    columns = (row.kind, row.at, row.principal)
    erased_by = None if is_tombstone else row.erased_by
    if row.hash == link(prev, key, row.seq, *columns, row.run, row.turn, row.event_id, row.digest, erased_by):
        return 2
    if oldest == 1 and row.hash == link_v1(prev, key, row.seq, *columns, row.event_id, row.digest):
        return 1
    return 0


def _marked(text: str | None) -> str:
    return "" if text is None else f"={text}"
