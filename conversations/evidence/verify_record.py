"""The whole record checked: the tree and who signed it, both kinds of chains, the rows made of events, authority.

Called by `manage.py verify`. By pages, beside a running server: it holds one conversation's fold at most.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import sha256
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError

from conversations.access.audit import chain as audit
from conversations.access.audit.anchor_file import AuditAnchorFile
from conversations.core.errors import Invalid, SwitchboardError
from conversations.events import verify_chains
from conversations.events.log.refold import Gone
from conversations.events.log.refold_check import Differs, RefoldCheck
from conversations.events.verify_chains import ChainReport, Link
from conversations.evidence import authority, checkpoints, merkle, notes, signing_key, timestamps, tree, witnesses
from conversations.evidence.notes import SignedNote, VerifierKey
from conversations.evidence.witness_settings import Witness
from conversations.models import AuditEntry, Conversation, TreeLeaf, Witnessed
from conversations.models import Checkpoint as CheckpointRow

logger = logging.getLogger(__name__)

Progress = Callable[[str, int], None]  # what is being counted, and how many so far
SIGNATURES = 100  # checkpoints whose signatures are checked, the newest; of all others the roots are compared


@dataclass(frozen=True)
class Settings:
    """What a check needs to know besides the database; without the paths it looks at nothing else."""

    data_dir: Path | None = None
    key_path: Path | None = None
    witnesses: Sequence[Witness] = ()
    witness_keys: Sequence[VerifierKey] = ()


def settings_of_server() -> Settings:
    """Return what the settings of this process say."""
    config = settings.CONFIG
    return Settings(settings.DATA_DIR, config.signing_key_path, config.witness_list, config.witness_key_list)


def _part(check: Callable[[RecordCheck], ChainReport]) -> Callable[[RecordCheck], ChainReport]:
    """Return a part of the check for which an unexpected exception is a fault: a changed value may cause any."""

    @wraps(check)
    def checked(record: RecordCheck) -> ChainReport:
        try:
            return check(record)
        except (SwitchboardError, DatabaseError, OSError):  # what the callers explain
            raise
        except Exception as error:
            logger.exception("a part of the verification could not be completed")
            return ChainReport(0, ok=False, first_bad="internal error", why=f"{type(error).__name__}: {error}")

    return checked


class RecordCheck:
    """One check. `since` is a checkpoint that was kept elsewhere: the tree must still begin with it; `is_short`: and
    events that are in it are not read again."""

    def __init__(
        self, known: Settings, *, since: SignedNote | None = None, is_short: bool = False,
        progress: Progress = lambda _, __: None,
    ) -> None:  # fmt: skip
        self._settings, self._since, self._progress = known, since, progress
        self.size = tree.size()  # before anything else: every head is read after it
        self._skip = notes.parse_checkpoint(since.text).size if since and is_short else 0
        self._leaves_seen = 0

    @_part
    def tree(self) -> ChainReport:
        """Check the tree: its leaves, the roots of its checkpoints, their signatures, and who has seen them."""
        try:
            why = self._fault_of_tree() or self._fault_of_keys() or next(self._faults_of_witnesses(), "")
        except SwitchboardError as error:
            why = error.message
        return ChainReport(self.size, ok=not why, first_bad="the tree" if why else "", why=why)

    @_part
    def audit(self) -> ChainReport:
        """Check the audit chain, its end against the data directory, and what the tree has of it."""
        chain, end, folder = audit.verify(), ChainReport(0, ok=True), self._settings.data_dir
        if folder is not None:
            end = AuditAnchorFile(folder).verify()
        if not chain.ok:
            return chain
        leaves = self._leaves(tree.AUDIT)
        while page := dict(islice(leaves, 500)):
            entries = dict(AuditEntry.objects.filter(seq__in=page).values_list("seq", "hash"))
            for seq, hash_ in page.items():
                if entries.get(seq) != hash_:
                    why = "differs from the signed tree: the end was cut off, or the chain was rebuilt"
                    return ChainReport(chain.count, ok=False, first_bad=f"audit entry {seq}", why=why)
        return chain if end.ok else replace(end, count=chain.count)

    @_part
    def events(self) -> ChainReport:
        """Check every conversation's chain against the tree; stop at the first bad event."""
        count = 0
        if not (hidden := verify_chains.verify_visible()).ok:
            return hidden
        for conversation in verify_chains.conversations():
            verdict = self._conversation(conversation)
            count += verdict.count
            self._progress("events", count)
            if not verdict.ok and Conversation.objects.filter(pk=conversation.pk).exists():
                return replace(verdict, count=count)
        if not (missing := self._missing_chain()).ok:
            return replace(missing, count=count)
        return replace(verify_chains.verify_orphans(), count=count)

    @_part
    def state(self) -> ChainReport:
        """Fold every conversation again, and the audit log; compare the rows they make."""
        count = 0
        for conversation in verify_chains.conversations():
            try:
                RefoldCheck(conversation.pk, conversation.key).run()
            except Gone:
                continue
            except Differs as error:
                place = f"conversation {conversation.key!r}"
                return ChainReport(count, ok=False, first_bad=place, why=str(error))
            count += 1
            self._progress("conversations", count)
        fault = authority.first_fault()
        return ChainReport(count, ok=not fault, first_bad="rights" if fault else "", why=fault)

    def _conversation(self, conversation: Conversation) -> ChainReport:
        chain = tree.chain_of(conversation.key, conversation.key_digest)
        after: Link | None = None
        if self._skip and (leaf := checkpoints.leaf_of(chain, self._skip)) is not None:
            after = (leaf.seq, leaf.hash)
            if not conversation.events.filter(seq=leaf.seq, hash=leaf.hash).exists():
                why = "differs from the signed tree"
                return ChainReport(
                    0, ok=False, first_bad=f"conversation {conversation.key!r}, event {leaf.seq}", why=why
                )
        return verify_chains.verify_conversation(conversation, leaves=self._leaves(chain, after), after=after)

    def _leaves(self, chain: str, after: Link | None = None) -> Iterator[Link]:
        """Read a chain's leaves, in the order of the tree; all are counted, those up to `after` passed over."""
        index = -1
        while True:
            rows = TreeLeaf.objects.filter(chain=chain, index__gt=index, index__lt=self.size).order_by("index")
            page = list(rows.values_list("index", "seq", "hash")[: tree.PAGE])
            if not page:
                return
            for index, seq, hash_ in page:  # noqa: B007  # the last one is where the next page begins
                self._leaves_seen += 1
                if after is None or seq > after[0]:
                    yield seq, hash_
            if len(page) < tree.PAGE:
                return

    def _missing_chain(self) -> ChainReport:
        """Find the chain of a leaf that no conversation has."""
        if self._leaves_seen >= self.size:
            return ChainReport(0, ok=True)
        known = {bytes.fromhex(tree.AUDIT)}
        ids = Conversation.objects.published().values_list("key", "key_digest")
        known.update(bytes.fromhex(tree.chain_of(*id_)) for id_ in ids.iterator())
        for index, chain, seq in TreeLeaf.objects.order_by("-index").values_list("index", "chain", "seq").iterator():
            if bytes.fromhex(chain) not in known:
                place = f"a conversation of {seq} events (in the tree: {chain})"
                return ChainReport(
                    0, ok=False, first_bad=place, why=f"missing, but leaf {index} of the signed tree has it"
                )
        return ChainReport(0, ok=True)

    def _fault_of_tree(self) -> str:
        """Compare the root over all leaves with each checkpoint, in one walk."""
        frontier, signed = merkle.Frontier(), self._checkpoints()
        row, last = next(signed, None), None
        for leaf in tree.leaves(0, self.size):
            frontier.add(leaf)
            while row is not None and row.size <= frontier.size:
                if row.size != frontier.size or row.root != frontier.root().hex():
                    return f"its first {row.size:,} leaves are not those of checkpoint {row.size:,}"
                if (text := notes.parse(row.note).text) != notes.parse_checkpoint(text)._replace(
                    size=row.size, root=frontier.root()
                ).text:
                    return f"the note of checkpoint {row.size:,} was changed"
                last, row = row, next(signed, None)
        if frontier.size < self.size:
            return f"leaf {frontier.size:,} is missing"
        if row is not None:
            return f"checkpoint {row.size:,} has more leaves than the tree, which has {frontier.size:,}"
        if self.size and (last is None or last.size < self.size):
            return f"its last leaves, after {last.size if last else 0:,}, were never signed"
        return self._fault_of_nodes()

    def _fault_of_nodes(self) -> str:
        """Compare the stored subtrees: proofs are made with them."""
        row = CheckpointRow.objects.filter(size=self.size).first()
        is_same = not self.size or (row is not None and tree.root(self.size).hex() == row.root)
        return "" if is_same else "its stored subtrees do not match its leaves"

    def _checkpoints(self) -> Iterator[CheckpointRow]:
        size = 0
        while page := list(CheckpointRow.objects.filter(size__gt=size).order_by("size")[:1_000]):
            for row in page:
                if row.size > self.size and size >= self.size:
                    return  # signed since
                yield row
                size = row.size

    def _fault_of_keys(self) -> str:
        """Check the signatures of the newest checkpoints, and that our own keys are those the database names."""
        own = signing_key.load(self._settings.key_path) if self._settings.key_path else None
        last, named = self._last_note(), checkpoints.verifier_keys()
        if own is not None and not named and last is not None:  # without one they may have been made just now
            return f"{self._settings.key_path} holds keys but the database names none: what they signed is missing"
        if own is not None and named and own.verifier_keys != named:
            return f"the database does not name the keys in {self._settings.key_path}"
        newest = CheckpointRow.objects.filter(size__lte=self.size).order_by("-size")[:SIGNATURES]
        for row in newest:
            note = notes.parse(row.note)
            if not notes.verified(note, named) or notes.parse_checkpoint(note.text).origin != named[0].name:
                return f"checkpoint {row.size:,} is not signed by the keys of this record"
        return ""

    def _faults_of_witnesses(self) -> Iterator[str]:
        """Compare the tree with every checkpoint that is kept elsewhere."""
        known_heads: list[tuple[str, SignedNote]] = []
        if self._since is not None:
            known_heads.append(("the given checkpoint", self._since))
        if last := self._last_note():
            known_heads.append((f"the checkpoint beside {self._settings.key_path}", last))
        for witness in self._settings.witnesses:
            if witness.kind == "file":
                path = Path(witness.place)
                try:
                    known_heads.append((f"the witness {path}", witnesses.newest_in(path)))
                except (FileNotFoundError, Invalid, UnicodeError) as error:
                    if (
                        TreeLeaf.objects.exists()
                        and Witnessed.objects.filter(witness=witness.name, size__gt=0).exists()
                    ):
                        yield f"the witness {path} no longer has a checkpoint: {error}"
        for whose, note in known_heads:
            if words := self._fault_of(note):
                yield f"{whose}: {words}"
        for row in Witnessed.objects.exclude(signatures=""):
            if words := self._fault_of_cosigned(row):
                yield f"the witness {row.witness}: {words}"

    def _last_note(self) -> SignedNote | None:
        return checkpoints.Signer(self._settings.key_path).last_note() if self._settings.key_path else None

    def _fault_of(self, note: SignedNote) -> str:
        checkpoint = notes.parse_checkpoint(note.text)
        named = checkpoints.verifier_keys()
        if not named:
            return f"it has {checkpoint.size:,} leaves, and this database was never signed"
        if not notes.verified(note, named):
            return "none of the keys that the database names signed it: they were changed, or it is another database's"
        return witnesses.check_against_tree(checkpoint, tree.size())  # as it is now: it may be signed since

    def _fault_of_cosigned(self, row: Witnessed) -> str:
        signed = CheckpointRow.objects.filter(size=row.size).first()
        if signed is None:
            return f"checkpoint {row.size:,}, which it signed, is missing"
        if token := witnesses.stamp_of(row.signatures):
            text = notes.parse(signed.note).text
            is_of_it = timestamps.read(token).digest == sha256(text.encode()).digest()
            return "" if is_of_it else f"its time stamp is for something other than checkpoint {row.size:,}"
        note = SignedNote(notes.parse(signed.note).text, tuple(notes.parse_signature_lines(row.signatures)))
        if self._settings.witness_keys and not notes.verified(note, self._settings.witness_keys):
            return f"it did not sign checkpoint {row.size:,}"
        return ""
