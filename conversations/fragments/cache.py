"""Drawn events, kept within a bound of bytes, dropped when their event is redacted. Used by drawing, in any thread."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable

from markupsafe import Markup

MAX_BYTES = 32 << 20
_OVERHEAD = 400  # bytes of key and bookkeeping per entry

Key = tuple[Hashable, ...]


class DrawnCache:
    """The least recently used goes first. Each entry hangs on the events it was drawn from."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Markup, tuple[int, ...]]] = OrderedDict()
        self._by_event: defaultdict[tuple[str, int], set[Key]] = defaultdict(set)
        self._forgettings = 0
        self.bytes = 0

    def get(self, key: Key, conversation: str, seqs: tuple[int, ...], make: Callable[[], Markup]) -> Markup:
        """Answer what is kept under `key`, else make it (outside the lock) and keep it for the events `seqs`."""
        with self._lock:
            if (kept := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return kept[0]
            forgettings = self._forgettings
        made = make()
        with self._lock:
            if forgettings == self._forgettings:  # else it may be drawn from what was just redacted
                self._keep(key, conversation, seqs, made)
        return made

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

    def _keep(self, key: Key, conversation: str, seqs: tuple[int, ...], made: Markup) -> None:
        size = _size(made)
        if key in self._entries or size > self._max // 8:
            return
        self._entries[key] = (made, seqs)
        self.bytes += size
        for seq in seqs:
            self._by_event[conversation, seq].add(key)
        while self.bytes > self._max:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        made, seqs = self._entries.pop(key)
        self.bytes -= _size(made)
        for seq in seqs:
            keys = self._by_event[str(key[0]), seq]
            keys.discard(key)
            if not keys:
                del self._by_event[str(key[0]), seq]


def _size(html: str) -> int:
    """Estimate the bytes in memory: one, two or four a character."""
    return len(html) * (1 if html.isascii() else 2) + _OVERHEAD
