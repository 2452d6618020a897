"""Fork events → row deltas (law I): whose fork a conversation is, and which of its events are copies.

| event | parent, forked_at | copied_seq | title, handler |
|---|---|---|---|
| conversation.opened, ours, with a parent (a response continued twice) | as stated | 0: no copies | its own rule |
| conversation.forked, ours: it stands right after the copies | as stated | forked_at | as stated |
| conversation.forked, of an import | as stated | 0: its events are claims anyway | |

Copies are history and nobody's deeds here: they fold messages, participants and the last line (§5), so that a
fork changes no run, no approval and no call, and starts none.
"""

from __future__ import annotations

import msgspec

from conversations.core import principals
from conversations.events import payload
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges

FAR = 1 << 62


class ForkFields(msgspec.Struct, kw_only=True):
    """What the fold reads of a fork's event."""

    parent: str | None = None
    forked_at: int | None = None


_decoder = msgspec.json.Decoder(ForkFields)


def opened(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note which conversation this one goes on from, where it was opened as a fork without copies."""
    if (origin := _read(event.body)) is not None:
        changes.forks[head.id] = (*origin, 0)
        head.outside_seq = head.outside_seq or head.head_seq  # its agents remember what was said in the parent


def forked(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note whose fork this is."""
    is_ours = principals.is_people(event.principal)
    if (origin := _read(event.body)) is None:
        return
    changes.forks[head.id] = (*origin, copies(event.body, head.head_seq) if is_ours else 0)
    if is_ours:
        head.title = (event.payload.title or "")[:200] or head.title
        head.handler = (event.payload.handler or "")[:200] or head.handler


def copies(body: str, seq: int) -> int:
    """Return how many events before a conversation.forked of ours at `seq` are copies: all of them, or none."""
    origin = _read(body)
    return seq - 1 if origin is not None and origin[1] == seq - 1 else 0


def _read(body: str) -> tuple[str, int] | None:
    try:
        fields = _decoder.decode(body)
    except msgspec.DecodeError:
        return None
    if not fields.parent or fields.forked_at is None or not 0 <= fields.forked_at < FAR:
        return None
    return payload.clean_text(fields.parent), fields.forked_at
