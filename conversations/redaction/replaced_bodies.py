"""Replace the bodies of events: what stands there then has no salt, and a chained `event.redacted` names its digest."""

from collections.abc import Iterable, Iterator, Sequence

from django.db.backends.utils import CursorWrapper

from conversations.events import payload
from conversations.events.log import bounded_reads, hash_chain
from conversations.events.log.sql import marks
from conversations.models import Conversation

_UPDATE = "UPDATE conversations_event SET body=%s,salt=NULL,erased_by=%s WHERE conversation_id=%s AND seq=%s"

NamedDigest = dict[str, int | str]  # an item of `events` in an `event.redacted`


def read(cursor: CursorWrapper, row: Conversation, seqs: Sequence[int]) -> Iterator[tuple[int, str | None, str]]:
    """Yield `(seq, erased_by, body)` of these events in order, read in pages of limited size. `replace` may use the
    cursor meanwhile."""
    source = f"FROM conversations_event WHERE conversation_id=%s AND seq IN ({marks(len(seqs))})"
    for page in bounded_reads.pages(cursor, "seq,erased_by,body", source, [row.pk, *seqs]):
        yield from page


def with_earlier(
    cursor: CursorWrapper, row: Conversation, events: Iterable[tuple[int, str | None, str]]
) -> Iterator[tuple[int, str, str]]:
    """Yield `(seq, body, body of the event right before it)` of events that `read` yields; the latter is empty for all
    but messages."""
    last = (0, "")
    for seq, _, body in events:
        earlier = ""
        if payload.parse(body.encode()).kind == "message":
            earlier = last[1] if last[0] == seq - 1 else next((body for *_, body in read(cursor, row, [seq - 1])), "")
        last = (seq, body)
        yield seq, body, earlier


def replace(cursor: CursorWrapper, row: Conversation, seq: int, body: str, erased_by: str) -> NamedDigest:
    """Store what replaces a body and who erased it; return how `event.redacted` names it."""
    cursor.execute(_UPDATE, [body, erased_by, row.pk, seq])
    return {"seq": seq, "digest": hash_chain.tombstone_digest(seq, erased_by, body)}
