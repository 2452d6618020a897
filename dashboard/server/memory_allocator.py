"""Has the C library give freed memory back, so that a server is as large as what it holds. Called by `asgi` at start.

glibc keeps large blocks for later once one was freed, in an arena for every thread: after sixteen pages of 5 MB the
server stayed at 600 MiB, with these bounds at 370.
"""

import ctypes
import sys

MMAP_THRESHOLD = 256 << 10  # bytes; a larger block is the system's own, and goes back at once. Fixed: glibc raises it
ARENAS = 2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h


def give_back_freed() -> bool:
    """Set both; return whether this C library took them. Another one is left as it is."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD) and mallopt(_M_ARENA_MAX, ARENAS))
