"""A cache of drawn events, limited in bytes; entries are dropped if their event is redacted. Usable from any thread."""

import sys
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable

from markupsafe import Markup

MAX_BYTES = 32 << 20
_OVERHEAD = 400  # bytes of key and bookkeeping per entry

_EMPTY = sys.getsizeof(Markup())

Key = tuple[Hashable, ...]


class DrawnCache:
    """Drops the least recently used entry first. Each entry belongs to the events it was drawn from."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Markup, tuple[int, ...]]] = OrderedDict()
        self._by_event: defaultdict[tuple[str, int], set[Key]] = defaultdict(set)
        self._forgettings = 0
        self.bytes = 0

    def get(self, key: Key, conversation: str, seqs: tuple[int, ...], make: Callable[[], Markup]) -> Markup:
        """Return the entry under `key`, else make it (outside the lock) and store it for the events `seqs`."""
        with self._lock:
            if (cached := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return cached[0]
            forgettings = self._forgettings
        markup = make()
        with self._lock:
            if forgettings == self._forgettings:  # else it may be drawn from what was just redacted
                self._keep(key, conversation, seqs, markup)
        return markup

    def forget(self, conversation: str, seq: int) -> None:
        """Drop everything that was drawn from this event."""
        with self._lock:
            self._forgettings += 1
            for key in list(self._by_event.get((conversation, seq), ())):
                self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._by_event.clear()
            self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def _keep(self, key: Key, conversation: str, seqs: tuple[int, ...], markup: Markup) -> None:
        size = _size(markup)
        if key in self._entries or size > self._max // 8:
            return
        self._entries[key] = (markup, seqs)
        self.bytes += size
        for seq in seqs:
            self._by_event[conversation, seq].add(key)
        while self.bytes > self._max:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        markup, seqs = self._entries.pop(key)
        self.bytes -= _size(markup)
        for seq in seqs:
            keys = self._by_event[str(key[0]), seq]
            keys.discard(key)
            if not keys:
                del self._by_event[str(key[0]), seq]


def _size(html: str) -> int:
    """Return the size in memory, bytes: one, two or four per character; one emoji makes it four for all."""
    return sys.getsizeof(html) - _EMPTY + _OVERHEAD
