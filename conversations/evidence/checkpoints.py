"""Checkpoints made: what moved becomes leaves, the root is signed. Called each minute by `checkpointer`."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from conversations.access.action_context import required_reason
from conversations.access.audit import chain
from conversations.core import private_file
from conversations.core.errors import Conflict, Invalid, NotFound, Unavailable
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.evidence import notes, signing_key, tree
from conversations.evidence.notes import SignedNote, TreeHead, VerifierKey
from conversations.evidence.signing_key import SigningKey
from conversations.models import Checkpoint as CheckpointRow
from conversations.models import Meta, TreeChain, TreeLeaf, TreeNode, Witnessed

KEYS = "checkpoint_keys"  # the fact of the database that names whose signatures count
LAST = "last-checkpoint"  # the file beside the keys
LEAVES = 250  # a transaction: all writers of a file wait for it


class Signer:
    """The keys in a file, and what they signed last: kept beside them, so that an older database is not signed."""

    def __init__(self, path: Path, origin: str = "") -> None:
        self.path, self._origin = path, origin

    def key(self) -> SigningKey | None:
        """Return the keys, made where there are none and the record was never signed. None where it is signed by keys
        that are elsewhere. Raises `Unavailable`."""
        known = verifier_keys()  # first: another tree moves the file away before it forgets the keys
        if not known:
            self._enter()
            known = verifier_keys()
        key = signing_key.load(self.path)
        return key if key is not None and known == key.verifier_keys else None

    def _enter(self) -> None:
        """Enter the keys of this place, made where there are none, as those that count. Of nodes that start together,
        each with a data directory of its own, one makes keys: the others wait for its row."""
        with write_transaction():
            meta, is_first = Meta.objects.get_or_create(name=KEYS, defaults={"value": ""})
            if is_first:
                key = signing_key.load(self.path) or signing_key.make(self.path, self._origin)
                meta.value = "\n".join(map(str, key.verifier_keys))
                meta.save()

    def has_keys(self) -> bool:
        """Return whether the keys that the database names are here. Raises `Unavailable`."""
        key = signing_key.load(self.path)
        return key is not None and key.verifier_keys == verifier_keys()

    def last(self) -> TreeHead | None:
        """Return what was signed last, as the file tells."""
        note = self.last_note()
        return notes.parse_checkpoint(note.text) if note else None

    def last_note(self) -> SignedNote | None:
        """Return the note of that."""
        with contextlib.suppress(FileNotFoundError, Invalid, UnicodeError):
            return notes.parse((self.path.parent / LAST).read_bytes().decode())
        return None

    def remember(self, note: str) -> None:
        """Write down what was signed."""
        private_file.replace(self.path.parent / LAST, note.encode())


def verifier_keys() -> list[VerifierKey]:
    """Return the public keys that the database names."""
    value = Meta.objects.filter(name=KEYS).values_list("value", flat=True).first()
    return [notes.parse_key(line) for line in value.split("\n")] if value else []


def newest() -> CheckpointRow | None:
    """Return the newest checkpoint."""
    return CheckpointRow.objects.order_by("-size").first()


def make(signer: Signer) -> bool:
    """Put what moved into the tree and sign it, in pages of `LEAVES`; return whether anything had moved.

    Raises `Conflict` where the tree is not what was signed before, `Unavailable` where the keys cannot be read.
    """
    key = signer.key()
    if key is None:
        return False
    has_moved, after = False, 0
    while heads := tree.moved(LEAVES, after=after):
        has_moved = True
        note = _sign(signer, key, heads)
        if note:
            signer.remember(note)
        if len(heads) < LEAVES or heads[-1].row == tree.AUDIT_ROW:
            break
        after = heads[-1].row
    return has_moved


def begin_anew(signer: Signer, principal: Principal, reason: str) -> str:
    """Begin another tree, with other keys and another name, where the record went back on purpose: an older backup was
    restored. Return the name of the tree that ends; an audit entry has it. Raises `Conflict` where nothing was signed,
    and Invalid without a reason.

    The old keys are moved aside; checkpoints that others kept of the old tree go on telling that it was longer.
    """
    reason = required_reason(reason)
    row, known = newest(), verifier_keys()
    last = signer.last()
    if not known:
        raise Conflict("the record has not been signed yet", code="tree")
    with _moved_aside(signer), write_transaction():
        for model in (TreeLeaf, TreeNode, TreeChain, CheckpointRow, Witnessed):
            model.objects.all().delete()
        Meta.objects.filter(name=KEYS).delete()
        size, root = (last.size, last.root.hex()) if last else (row.size, row.root) if row else (0, "")
        facts = {"tree": known[0].name, "leaves": size, "root": root, "key": str(known[0])}
        chain.add_entry(principal, "begin_tree", "record", reason=reason, correlation=facts)
    return known[0].name


@contextlib.contextmanager
def _moved_aside(signer: Signer) -> Iterator[None]:
    """Move the old keys, and what they signed last, aside before the database forgets them: else a server would enter
    them again. Put them back if the block fails."""
    aside = f"ended-{time.time_ns() // 1_000_000}-"
    moved: list[tuple[Path, Path]] = []
    try:
        for path in (signer.path, signer.path.parent / LAST):
            with contextlib.suppress(FileNotFoundError):
                moved.append((path.rename(path.with_name(aside + path.name)), path))
        yield
    except BaseException:
        for there, path in moved:
            there.rename(path)
        raise


def _sign(signer: Signer, key: SigningKey, heads: Sequence[tree.Head]) -> str:
    with write_transaction():
        Meta.objects.select_for_update().filter(name=KEYS).first()  # processes take turns
        heads = tree.further(heads)
        if not heads or verifier_keys() != key.verifier_keys:  # another tree begins, with other keys
            return ""
        size = tree.size()
        _check(signer, key, size)
        end = tree.add(heads, size)
        checkpoint = TreeHead(key.origin, end, tree.root(end))
        signatures = key.sign(checkpoint)
        for row in CheckpointRow.objects.filter(size=size):
            CheckpointRow.objects.filter(size=size).update(note=notes.shortened(row.note))
        note = notes.join(checkpoint.text, signatures)
        CheckpointRow.objects.create(size=end, root=checkpoint.root.hex(), at=time.time_ns() // 1000, note=note)
    return note


def _check(signer: Signer, key: SigningKey, size: int) -> None:
    """Refuse to sign a tree that does not go on from what was signed. Raises `Conflict`."""
    row, last = newest(), signer.last()
    if size != (row.size if row else 0):
        raise Conflict(f"the tree has {size:,} leaves, and only {row.size if row else 0:,} are signed", code="tree")
    root = tree.root(size)
    if row is not None:
        signed = notes.parse(row.note)
        if not notes.verified(signed, key.verifier_keys) or signed.text != TreeHead(key.origin, size, root).text:
            raise Conflict(f"checkpoint {size:,} differs from the one that was signed", code="tree")
    if last is None or last.origin != key.origin:
        return
    if last.size > size or (root if last.size == size else tree.root(last.size)) != last.root:
        raise Conflict(
            f"the record does not contain the signed checkpoint {last.size:,}: it is an older copy, or was changed",
            code="went_back",
        )


def leaf_of(chain: str, upto: int) -> TreeLeaf | None:
    """Return a chain's newest leaf in a tree of so many."""
    return TreeLeaf.objects.filter(chain=chain, index__lt=upto).order_by("-index").first()


def require_key(signer: Signer) -> SigningKey:
    """Return the keys; only the server makes them. Raises `NotFound` before it did, and `Unavailable` where this place
    has none that count."""
    if not verifier_keys():
        raise NotFound("the record has not been signed yet: the server signs it shortly after it starts")
    key = signer.key()
    if key is None:
        raise Unavailable(f"{signer.path} has none of the keys that the database names", code="signing_key")
    return key
