"""Ids that we create: time-ordered, as the client library makes them."""

import hashlib

from switchboard.ids import new_id

__all__ = ["copy_id", "new_id"]


def copy_id(id_: str, number: int) -> str:
    """Return the bus id of an envelope on its n-th topic: its own on the first, else a UUID, the same each time."""
    if not number:
        return id_
    mark = hashlib.sha256(f"{id_}\0{number}".encode()).hexdigest()
    return f"{mark[:8]}-{mark[8:12]}-8{mark[13:16]}-8{mark[17:20]}-{mark[20:32]}"
