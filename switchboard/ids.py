"""Ids of our own making: UUIDv7 (RFC 9562, section 5.7), so that indexes grow at their end."""

import os
import time
import uuid


def new_id() -> str:
    """Return a new id as text; ids of later milliseconds sort after it."""
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62))
