"""Check the proofs of a Merkle tree as RFC 6962, section 2.1, has a client do it."""

from collections.abc import Sequence

from conversations.evidence.merkle import node_hash


def root_by_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root to which a path leads; None for a path that no such tree has."""
    if not 0 <= index < size:
        return None
    root, node, last = leaf, index, size - 1
    for sibling in path:
        if not last:
            return None
        if node & 1 or node == last:
            root = node_hash(sibling, root)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        node, last = node >> 1, last >> 1
    return root if not last else None


def is_consistent(old: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that the larger tree begins with the smaller one."""
    if old == size:
        return not proof and old_root == root
    if old == 0:
        return not proof
    if old > size:
        return False
    hashes = list(proof) if old & (old - 1) else [old_root, *proof]
    if not hashes:
        return False
    node, last = old - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    first = second = hashes[0]
    for sibling in hashes[1:]:
        if not last:
            return False
        if node & 1 or node == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        node, last = node >> 1, last >> 1
    return not last and first == old_root and second == root
