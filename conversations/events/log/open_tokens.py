"""The pieces of an answer that its run has said and that are not stored yet. Made by a run's event writer."""

import threading

FULL = 1024  # characters of one stored part


class OpenTokens:
    """Pieces of one turn. The run's thread adds to them until the writer's thread takes them all, so only the first
    piece of a stored part passes the queue."""

    __slots__ = ("_guard", "_is_open", "_pieces", "keeps_lengths", "size")

    def __init__(self, first: str, *, keeps_lengths: bool = False) -> None:
        """Start with a piece. `keeps_lengths`: where one piece ends and the next begins is stored."""
        self.keeps_lengths = keeps_lengths
        self.size = len(first)  # characters
        self._pieces = [first]
        self._is_open = True
        self._guard = threading.Lock()

    def add(self, piece: str) -> bool:
        """Add a piece; return False if they are full or taken."""
        with self._guard:
            if not self._is_open or self.size >= FULL:
                return False
            self._pieces.append(piece)
            self.size += len(piece)
            return True

    def take(self) -> list[str]:
        """Return the pieces; none can be added any more."""
        with self._guard:
            self._is_open = False
        return self._pieces
