"""Find the conversations whose rows belong to a history: the conversation itself and, for a fork's copies, its parents
(§5). Read by `tool_calls`.

A copied event folds no call of its own, so a call among the copies is a row of the conversation in which it was made.
"""

from typing import NamedTuple

from django.db.backends.utils import CursorWrapper

MAX_ITEMS = 100  # forks of forks that are looked through


class LineagePart(NamedTuple):
    """A part of a history: this conversation's own events with `after` < seq <= `upto`. None: to the end."""

    conversation: int
    after: int
    upto: int | None

    def has(self, seq: int) -> bool:
        """Return whether an event belongs to this part."""
        return self.after < seq and (self.upto is None or seq <= self.upto)


def lineage(cursor: CursorWrapper, conversation: int, upto: int | None = None) -> list[LineagePart]:
    """Return the parts of a history up to an event (None: to the end), newest first."""
    parts: list[LineagePart] = []
    here = conversation
    while len(parts) < MAX_ITEMS:
        cursor.execute("SELECT copied_seq,parent_id FROM conversations_conversation WHERE id=%s", [here])
        row = cursor.fetchone()
        if row is None:
            return parts
        copied, parent = row
        after = copied if upto is None else min(copied, upto)
        parts.append(LineagePart(here, after, upto))
        if not after or parent is None:
            return parts
        upto, here = after, parent
    return parts
