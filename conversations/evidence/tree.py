"""The one tree of the deployment, as the tables have it: a leaf says that a chain had a hash at a number."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from django.db import connection
from django.db.models import Max

from conversations.core.errors import Conflict
from conversations.events.log import hash_chain
from conversations.evidence import merkle
from conversations.models import AuditHead, TreeChain, TreeLeaf, TreeNode

AUDIT = sha256(b"\0audit").hexdigest()  # the audit chain's name in the tree; no conversation's id holds NUL
AUDIT_ROW = 0
STEP = 8  # levels between two stored nodes
BLOCK = 1 << STEP
PAGE = 5_000
_MOVED = """SELECT c.id,c.key,c.key_digest,c.head_seq,c.head_hash FROM conversations_conversation c
LEFT JOIN conversations_treechain t ON t.conversation=c.id
WHERE (NOT c.is_staged OR c.key NOT LIKE 'staged:%%') AND NOT c.is_demo AND c.head_seq>0
AND (t.seq IS NULL OR t.seq<c.head_seq) AND c.id>%s
ORDER BY c.id LIMIT %s"""


class Head(NamedTuple):
    """Where a chain is. `row`: the conversation's, 0 for the audit log."""

    row: int
    chain: str
    seq: int
    hash: str


def chain_of(key: str, key_digest: str) -> str:
    """Return a conversation's name in the tree: no hash of its id alone, where that can be erased."""
    return hash_chain.seed(hash_chain.identity_of(key, key_digest))


def leaf_hash(chain: str, seq: int, hash_: str) -> bytes:
    """Return the hash of a leaf."""
    return merkle.leaf_hash(f"switchboard-head/1\n{chain}\n{seq}\n{hash_}".encode())


def size() -> int:
    """Return how many leaves there are."""
    last = TreeLeaf.objects.aggregate(last=Max("index"))["last"]
    return 0 if last is None else int(last) + 1


def moved(limit: int = PAGE, *, after: int = 0) -> list[Head]:
    """Return chains that are further than the tree has them, from the conversation after row `after` on, those of the
    demo left out; the audit log's last, once there are no more. Reads every conversation's row: not to be called in a
    write transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_MOVED, [after, limit])
        heads = [Head(row, chain_of(*id_), seq, hash_) for row, *id_, seq, hash_ in cursor.fetchall()]
    if len(heads) == limit:
        return heads
    audit = AuditHead.objects.filter(id=1).first()
    stored = TreeChain.objects.filter(conversation=AUDIT_ROW).values_list("seq", flat=True).first() or 0
    if audit and audit.seq > stored:
        heads.append(Head(AUDIT_ROW, AUDIT, audit.seq, audit.hash))
    return heads


def further(heads: Sequence[Head]) -> list[Head]:
    """Return those of these heads that the tree does not have yet."""
    rows = TreeChain.objects.filter(conversation__in=[head.row for head in heads])
    known = dict(rows.values_list("conversation", "seq"))
    return [head for head in heads if head.seq > known.get(head.row, 0)]


def add(heads: Sequence[Head], first: int) -> int:
    """Add a leaf for each head, the first as number `first`; return the new size. Inside `write_transaction()`."""
    TreeLeaf.objects.bulk_create(
        [TreeLeaf(index=first + n, chain=head.chain, seq=head.seq, hash=head.hash) for n, head in enumerate(heads)],
        batch_size=500,
    )
    TreeChain.objects.bulk_create(
        [TreeChain(conversation=head.row, seq=head.seq) for head in heads],
        batch_size=500, update_conflicts=True, unique_fields=["conversation"], update_fields=["seq"],
    )  # fmt: skip
    end = first + len(heads)
    _add_nodes(first, end)
    return end


def subtree(start: int, end: int) -> bytes:
    """Return the root over a range of leaves. Raises `Conflict` where one is missing."""
    width = end - start
    if width <= BLOCK:
        hashes = list(leaves(start, end))
        if len(hashes) != width:
            raise Conflict(f"leaves {start} to {end} of the tree are not all present", code="tree")
        return merkle.root_of(hashes)
    level = width.bit_length() - 1
    if width == 1 << level and start % width == 0:
        stored = level - level % STEP
        return _root_of_nodes(stored, start >> stored, end >> stored)
    middle = start + merkle.split(width)
    return merkle.node_hash(subtree(start, middle), subtree(middle, end))


def leaves(start: int, end: int) -> Iterator[bytes]:
    """Read hashes of leaves, by pages."""
    while start < end:
        page = TreeLeaf.objects.filter(index__gte=start, index__lt=min(end, start + PAGE)).order_by("index")
        rows = list(page.values_list("index", "chain", "seq", "hash"))
        if [row[0] for row in rows] != list(range(start, start + len(rows))) or not rows:
            return
        yield from (leaf_hash(*row[1:]) for row in rows)
        start += len(rows)


def root(size_: int) -> bytes:
    """Return the root of the first leaves. Raises `Conflict` where one is missing."""
    return subtree(0, size_) if size_ else merkle.EMPTY


def inclusion(index: int, size_: int) -> list[bytes]:
    """Return the proof that a leaf is in the tree of so many."""
    return merkle.inclusion(subtree, index, size_)


def consistency(old: int, size_: int) -> list[bytes]:
    """Return the proof that the tree of `size_` leaves begins with that of `old`."""
    return merkle.consistency(subtree, old, size_)


def _add_nodes(first: int, end: int) -> None:
    """Store the roots of full blocks that the leaves from `first` on have completed."""
    level = STEP
    while end >> level:
        full = range(first >> level, end >> level)
        nodes = [TreeNode(level=level, index=index, hash=_node(level, index).hex()) for index in full]
        if nodes:
            TreeNode.objects.bulk_create(nodes, batch_size=500)
        level += STEP


def _node(level: int, index: int) -> bytes:
    if level == STEP:
        return merkle.root_of(leaves(index << STEP, (index + 1) << STEP))
    return _root_of_nodes(level - STEP, index << STEP, (index + 1) << STEP)


def _root_of_nodes(level: int, first: int, end: int) -> bytes:
    """Return the root over stored nodes. Raises `Conflict` where one is missing."""
    nodes = TreeNode.objects.filter(level=level, index__gte=first, index__lt=end).order_by("index")
    hashes = [bytes.fromhex(hash_) for hash_ in nodes.values_list("hash", flat=True)]
    if len(hashes) != end - first:
        raise Conflict(f"subtrees {first} to {end} of level {level} of the tree are not all present", code="tree")
    return merkle.root_of(hashes)
