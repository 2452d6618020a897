"""The hash chain of a conversation (§5): every event's hash covers its columns, its body and the previous hash.

Format 2 covers every column that never changes once written. Format 1 left out run, turn and who erased it, and treated
an empty id as no id. A chain that began in format 1 stays valid and continues in format 2; after its first link in
format 2, no link in format 1 is accepted. Format 3 has a salted digest of the conversation's id in place of the id, so
that the id can be erased: a conversation with such a digest has links of format 3 alone, any other has none.
"""

from collections.abc import Collection
from hashlib import sha256
from typing import Any

SALT = 16  # bytes
_V2, _V3 = "switchboard/2", "switchboard/3"
_OPAQUE = "\0"

Chained = Any  # a row of the table or a line of an export: both have the columns under the same names


def identity_of(key: str, key_digest: str) -> str:
    """Return what stands for a conversation in its chain and in the tree: NUL, which no id contains, and the digest of
    its id; the id itself where there is no digest (formats 1 and 2)."""
    return f"\0{key_digest}" if key_digest else key


def seed(identity: str) -> str:
    """Return the hash before seq 1, which is also the conversation's name in the tree: the SHA-256, lower hex."""
    return sha256(identity.encode()).hexdigest()


def digest(salt: bytes, text: str) -> str:
    """Return the SHA-256 over salt and a body or an id, lower hex. Who erases it removes the salt and keeps this."""
    return sha256(salt + text.encode()).hexdigest()


def erased_key(key_digest: str) -> str:
    """Return the id that a conversation has once its own was erased."""
    return f"erased-{key_digest[:16]}"


def fault_of_key(key: str, salt: bytes | None, key_digest: str, named: Collection[str] = ()) -> str:
    """Return what is wrong with a conversation's id; empty for nothing. `named`: what its `conversation.id_erased` name
    as its new id."""
    if not key_digest:
        return "the digest of the conversation's id is missing, although it has a salt" if salt is not None else ""
    if salt is not None:
        is_same = len(salt) == SALT and digest(salt, key) == key_digest
        return "" if is_same else "the conversation's id was changed: it does not match its digest"
    if key == erased_key(key_digest) and key in named:
        return ""
    return "the conversation's id cannot be checked for changes: its salt is missing, and no event erased it"


def tombstone_digest(seq: int, erased_by: str | None, body: str) -> str:
    """Return the digest by which `event.redacted` names a tombstone: the SHA-256 over its number, who erased it, and
    what replaces its body, joined by NUL, lower hex."""
    eraser = "" if erased_by is None else f"={erased_by}"
    return sha256(f"{_V2} tombstone\0{seq}\0{eraser}\0{body}".encode("utf-8", "replace")).hexdigest()


def link(
    prev: str, identity: str, seq: int, kind: str, at: int, principal: str, run: str | None, turn: int | None,
    event_id: str | None, digest: str, erased_by: str | None = None,
) -> str:  # fmt: skip
    """Return an event's hash: SHA-256 over these values, joined by NUL (no column can contain one), lower hex. A text
    that may be null is prefixed with `=`, so that null and empty differ."""
    version = _V3 if identity[:1] == _OPAQUE else _V2
    parts = (
        f"{version}\0{prev}\0{identity}\0{seq}\0{kind}\0{at}\0{principal}\0{'' if run is None else f'={run}'}"
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


def format_of(prev: str, identity: str, row: Chained, *, oldest: int = 1, is_tombstone: bool = False) -> int:
    """Return the format in which an event's hash matches the previous one: 3 where an id has a digest; else 2, or 1 (if
    `oldest` allows it); 0 for none. An event that was erased after it was written was hashed without who erased it,
    unless it is a fork's copy of a tombstone."""
    columns = (row.kind, row.at, row.principal)
    is_opaque = identity[:1] == _OPAQUE
    for erased_by in (None, row.erased_by) if is_tombstone else (row.erased_by,):
        if row.hash == link(prev, identity, row.seq, *columns, row.run, row.turn, row.event_id, row.digest, erased_by):
            return 3 if is_opaque else 2
    if oldest == 1 and not is_opaque:
        return int(row.hash == link_v1(prev, identity, row.seq, *columns, row.event_id, row.digest))
    return 0
