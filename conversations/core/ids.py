"""Ids that we create, time-ordered as the client library makes them, or derived from a text."""

import hashlib

from switchboard.ids import new_id

__all__ = ["copy_id", "derived_id", "new_id", "text_digest"]


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8, hexadecimal. Half a surrogate pair counts by the bytes it would have."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def derived_id(text: str) -> str:
    """Return the id for a text, the same each time: a UUIDv8 (RFC 9562, section 5.8) made of its SHA-256."""
    mark = text_digest(text)
    return f"{mark[:8]}-{mark[8:12]}-8{mark[13:16]}-8{mark[17:20]}-{mark[20:32]}"


def copy_id(id_: str, number: int) -> str:
    """Return the bus id of an envelope on its n-th topic: its own on the first, else a UUID, the same each time."""
    return derived_id(f"{id_}\0{number}") if number else id_
