"""The Merkle tree of RFC 6962, section 2: hashes, roots, and both proofs. No database; SHA-256 throughout."""

from collections.abc import Callable, Iterable
from hashlib import sha256

EMPTY = sha256(b"").digest()  # the root of no leaves

Subtree = Callable[[int, int], bytes]  # the root of the leaves from a first one up to, and without, an end


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees, side by side."""
    return sha256(b"\1" + left + right).digest()


def split(size: int) -> int:
    """Return the largest power of two below a size of at least two."""
    return 1 << ((size - 1).bit_length() - 1)


class Frontier:
    """The roots of the full subtrees of a tree that only grows, from the left: O(log n) memory."""

    def __init__(self) -> None:
        self.size = 0
        self._roots: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Add the hash of a leaf."""
        root, size = leaf, self.size
        while size & 1:
            root = node_hash(self._roots.pop(), root)
            size >>= 1
        self._roots.append(root)
        self.size += 1

    def root(self) -> bytes:
        """Return the root of the tree so far."""
        if not self._roots:
            return EMPTY
        root = self._roots[-1]
        for left in reversed(self._roots[:-1]):
            root = node_hash(left, root)
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root over hashes of leaves."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.add(leaf)
    return frontier.root()


def inclusion(subtree: Subtree, index: int, size: int) -> list[bytes]:
    """Return the audit path of a leaf, its sibling first (2.1.1)."""
    return _path(subtree, index, 0, size)


def consistency(subtree: Subtree, old: int, size: int) -> list[bytes]:
    """Return the proof that a tree of `size` leaves begins with one of `old`, 0 < old <= size (2.1.2)."""
    return _subproof(subtree, old, 0, size, is_whole=True) if old else []


def _path(subtree: Subtree, index: int, start: int, end: int) -> list[bytes]:
    if end - start == 1:
        return []
    middle = start + split(end - start)
    if index < middle:
        return [*_path(subtree, index, start, middle), subtree(middle, end)]
    return [*_path(subtree, index, middle, end), subtree(start, middle)]


def _subproof(subtree: Subtree, old: int, start: int, end: int, *, is_whole: bool) -> list[bytes]:
    if old == end:
        return [] if is_whole else [subtree(start, end)]
    middle = start + split(end - start)
    if old <= middle:
        return [*_subproof(subtree, old, start, middle, is_whole=is_whole), subtree(middle, end)]
    return [*_subproof(subtree, old, middle, end, is_whole=False), subtree(start, middle)]
