"""Make the C library return freed memory to the system, so that the server's size follows its contents. Called by
`asgi` at start.

glibc keeps large freed blocks for later, in one arena per thread: after sixteen pages of 5 MB the server stayed at 600
MiB, with these limits at 370 MiB.
"""

import ctypes
import sys

MMAP_THRESHOLD = 256 << 10  # bytes; a larger block is the system's own, and goes back at once. Fixed: glibc raises it
ARENAS = 2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h


def give_back_freed() -> bool:
    """Set both limits; return whether this C library accepted them. Another one is left as it is."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD) and mallopt(_M_ARENA_MAX, ARENAS))
