"""Ids of our own making: UUIDv7 (RFC 9562, section 5.7), so that indexes grow at their end."""

import os
import random
import time

# Of its own, so that a program's `random.seed` does not repeat ids; os.urandom would give up the GIL for every id.
_random = random.Random()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def new_id() -> str:
    """Return a new id as text; ids of later milliseconds sort after it."""
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | _random.getrandbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    digits = f"{value & ~(0x3 << 62) | 0x2 << 62:032x}"  # written here: `uuid.UUID` takes three times as long
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
