"""Fork events → row deltas (law I): whose fork a conversation is, and which of its events are copies.

| event | parent, forked_at | copied_seq | title, handler |
|---|---|---|---|
| conversation.opened, ours, with a parent (a response continued twice) | as told | 0: no copies | its own rule |
| conversation.forked, ours: it stands right after the copies | as told | forked_at | as told |
| conversation.forked, of an import | as told | 0: its events are claims anyway | |

Copies are history and nobody's deeds here: they fold messages, participants and the last line (design 5), so that a
fork changes no run, no approval and no call, and starts none.
"""

from __future__ import annotations

import msgspec

from conversations import envelopes, principals
from conversations.projections.state import Facts, Fold, Head

COPIED = ("message", "output", "user_message", "control", "response.received")  # what of a copy is folded
FAR = 1 << 62


class Told(msgspec.Struct, kw_only=True):
    """What the fold reads of a fork's event."""

    parent: str | None = None
    forked_at: int | None = None


_decoder = msgspec.json.Decoder(Told)


def opened(changes: Fold, head: Head, facts: Facts) -> None:
    """Note which conversation this one goes on from, where it was opened as a fork without copies."""
    if (told := _read(facts.body)) is not None:
        changes.forks[head.id] = (*told, 0)


def forked(changes: Fold, head: Head, facts: Facts) -> None:
    """Note whose fork this is. A claim that came over a bus or a door makes none."""
    is_ours = principals.is_ours(facts.principal)
    told = _read(facts.body)
    if told is None or not (is_ours or facts.principal.startswith("import:")):
        return
    changes.forks[head.id] = (*told, copies(facts.body, head.head_seq) if is_ours else 0)
    if is_ours:
        head.title = (facts.said.title or "")[:200] or head.title
        head.handler = (facts.said.handler or "")[:200] or head.handler


def copies(body: str, seq: int) -> int:
    """Answer how many events before a conversation.forked of ours at `seq` are copies: all of them, or none."""
    told = _read(body)
    return seq - 1 if told is not None and told[1] == seq - 1 else 0


def _read(body: str) -> tuple[str, int] | None:
    try:
        told = _decoder.decode(body)
    except msgspec.DecodeError:
        return None
    if not told.parent or told.forked_at is None or not 0 <= told.forked_at < FAR:
        return None
    return envelopes.fit(told.parent), told.forked_at
