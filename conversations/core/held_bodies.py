"""Limit the memory for request bodies: anybody may begin to send one, and end it at leisure. No Django, no protocol;
for one event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conversations.core.errors import Busy

MAX_HELD = 256 << 20  # bytes of all bodies that are still arriving
MAX_HELD_BY_ONE = 128 << 20  # of one client's address
FREE = 64 << 10  # bytes of each that are not counted, about what the transport buffers anyway


class HeldBodies:
    """The bodies that a process holds for some purpose.

    `limit`: bytes of all together, `limit_of_one`: of one sender's, so that a slow one does not keep out the others.
    The first `free` bytes of each are not counted: small requests are read whatever others send.
    """

    def __init__(self, limit: int, refusal: str, *, limit_of_one: int, free: int = 0) -> None:
        self.limit, self.limit_of_one, self._free = limit, limit_of_one, free
        self._refusal = refusal
        self._bytes = Counter[str]()  # by sender

    @property
    def size(self) -> int:
        """Bytes that are counted."""
        return self._bytes.total()

    @contextmanager
    def counting(self, sender: str) -> Iterator[Callable[[int], None]]:
        """Count one body while the block runs; yield a function that is called with its size whenever that changes. It
        raises Busy above a limit."""
        counted = 0

        def resize(size: int) -> None:
            nonlocal counted
            more = max(0, size - self._free) - counted
            if more > 0 and (self.size + more > self.limit or self._bytes[sender] + more > self.limit_of_one):
                raise Busy(self._refusal)
            self._bytes[sender] += more
            counted += more

        try:
            yield resize
        finally:
            self._bytes[sender] -= counted
            if not self._bytes[sender]:
                del self._bytes[sender]


held_bodies = HeldBodies(
    MAX_HELD,
    "too many large requests are being received: send again later",
    limit_of_one=MAX_HELD_BY_ONE,
    free=FREE,
)
