"""Verify the chain on demand, one bounded piece per request. The cursor is signed, so its progress cannot be forged."""

from typing import NamedTuple

from django.conf import settings
from django.core import signing

from conversations.access.audit import chain
from conversations.access.audit.anchor_file import AuditAnchorFile
from conversations.access.audit.chain import ChainCheck, Fault
from conversations.core.errors import Invalid
from conversations.events.verify_chains import PAGE, ChainReport

PIECE = 20_000  # entries of one request: some tenths of a second
VALID_S = 86_400  # how long a walk may be gone on with
_SALT = "conversations.auditlog.checking"


class Checked(NamedTuple):
    """The progress of a walk: entries 1 to `upto` of `head` are intact, except for the fault, if any. `cursor`
    continues."""

    upto: int
    head: int
    fault: Fault | None = None
    anchor: ChainReport | None = None  # what the data directory remembers, where that is gone
    cursor: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether the whole chain was verified without a fault."""
        return not (self.cursor or self.fault or self.anchor)


def check(cursor: str = "") -> Checked:
    """Verify a piece of the chain; without a cursor from the first entry. Raises Invalid for a cursor that is not one
    of ours."""
    walk = _read(cursor) if cursor else chain.begin()
    fault = None
    for _ in range(max(1, PIECE // PAGE)):
        walk, fault = chain.check(walk, min(PAGE, PIECE))
        if fault or walk.is_over:
            break
    if fault:
        return Checked(walk.seq, walk.head, fault)
    if not walk.is_over:
        return Checked(walk.seq, walk.head, cursor=signing.dumps(walk[:4], salt=_SALT, compress=True))
    end = AuditAnchorFile(settings.DATA_DIR).verify()  # the end may have been cut off together with the head
    return Checked(walk.seq, walk.head, anchor=None if end.ok else end)


def _read(cursor: str) -> ChainCheck:
    try:
        return ChainCheck(*signing.loads(cursor, salt=_SALT, max_age=VALID_S))
    except (signing.BadSignature, TypeError):
        raise Invalid("must be a cursor from an earlier response of today; start again", field="cursor") from None
