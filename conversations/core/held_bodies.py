"""Limit the memory for request bodies that are still arriving: anybody may begin to send one, and end it at leisure.
No Django, no protocol; for one event loop.

The first 64 KiB of a body are free, about what the transport buffers anyway: small requests are read whatever others
send.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conversations.core.errors import Busy

MAX_HELD = 256 << 20  # bytes of all bodies together
FREE = 64 << 10  # bytes of each that are not counted


class HeldBodies:
    """The bodies that a process is receiving."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # bytes
        self.size = 0  # bytes

    @contextmanager
    def counting(self) -> Iterator[Callable[[int], None]]:
        """Count one body while the block runs; call what is yielded with its size so far. That raises Busy above the
        limit."""
        counted = 0

        def grow(size: int) -> None:
            nonlocal counted
            more = max(0, size - FREE) - counted
            if self.size + more > self.limit:
                raise Busy("too many large requests are being received: send again later")
            self.size, counted = self.size + more, counted + more

        try:
            yield grow
        finally:
            self.size -= counted


held_bodies = HeldBodies(MAX_HELD)
