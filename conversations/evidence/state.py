"""How far the record is signed and witnessed, in words for the audit page and `GET /checkpoint`."""

import time
from typing import NamedTuple

from conversations.evidence import checkpoints, notes
from conversations.evidence.notes import SignedNote
from conversations.evidence.witnesses import STAMP
from conversations.models import Checkpoint, Witnessed


class SignedState(NamedTuple):
    """The newest checkpoint, how old it is, and who has seen it."""

    size: int
    root: str
    age_s: int
    witnessed_by: list[str]
    problems: list[str]  # of witnesses that have not seen it

    @property
    def words(self) -> str:
        """One sentence."""
        count = len(self.witnessed_by)
        return f"Signed {age(self.age_s)} ago, {f'witnessed by {count}' if count else 'not witnessed'}"


def current() -> SignedState | None:
    """Return what is signed; None for nothing yet."""
    row = checkpoints.newest()
    if row is None:
        return None
    seen = list(Witnessed.objects.order_by("witness"))
    by = [each.witness for each in seen if each.size == row.size and not each.problem]
    problems = [f"{each.witness}: {each.problem}" for each in seen if each.problem]
    return SignedState(row.size, row.root, max(0, int(time.time() - row.at / 1e6)), by, problems)


def note() -> str:
    """Return the newest checkpoint with the signatures of witnesses; empty for none."""
    row = checkpoints.newest()
    return with_witnesses(row) if row else ""


def with_witnesses(row: Checkpoint) -> str:
    """Return a checkpoint's note with the signatures that witnesses gave of it."""
    signed = notes.parse(row.note)
    rows = Witnessed.objects.filter(size=row.size).exclude(signatures="").exclude(signatures__startswith=STAMP)
    lines = "".join(rows.values_list("signatures", flat=True))
    theirs = notes.parse_signature_lines(lines) if lines else []
    return str(SignedNote(signed.text, (*signed.signatures, *theirs)))


def age(seconds: int) -> str:
    """Return an age in words: 12 s, 5 min, 3 h."""
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
