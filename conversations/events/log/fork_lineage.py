"""Find the conversations whose rows belong to a history: the conversation itself and, for a fork's copies, its parents
(§5). Read by `call_events`.

A copied event folds no call of its own, so a call among the copies is a row of the conversation in which it was made.
"""

from typing import NamedTuple

from django.db.backends.utils import CursorWrapper

MAX_FORKS = 100  # forks of forks that are looked through
ORIGIN = "id,copied_seq,parent_id"


class HistoryOrigin(NamedTuple):
    """A conversation's row, and where its history begins, in the order of `ORIGIN`."""

    conversation: int
    copied: int  # the seq of the last copied event; 0: it is not a fork
    parent: int | None


class LineagePart(NamedTuple):
    """A part of a history: this conversation's own events with `after` < seq <= `upto`. None: to the end."""

    conversation: int
    after: int
    upto: int | None

    def has(self, seq: int) -> bool:
        """Return whether an event belongs to this part."""
        return self.after < seq and (self.upto is None or seq <= self.upto)


def lineage(cursor: CursorWrapper, origin: HistoryOrigin, upto: int | None = None) -> list[LineagePart]:
    """Return the parts of a history up to an event (None: to the end), newest first; without a query if the
    conversation is not a fork."""
    parts: list[LineagePart] = []
    while len(parts) < MAX_FORKS:
        after = origin.copied if upto is None else min(origin.copied, upto)
        parts.append(LineagePart(origin.conversation, after, upto))
        if not after or origin.parent is None:
            return parts
        cursor.execute(f"SELECT {ORIGIN} FROM conversations_conversation WHERE id=%s", [origin.parent])
        row = cursor.fetchone()
        if row is None:
            return parts
        upto, origin = after, HistoryOrigin(*row)
    return parts
