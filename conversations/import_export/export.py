"""Export a conversation as the lines of §5: a fixed head, then its events in reads of limited size."""

import json
from collections.abc import Callable, Iterator

from django.db import connection

from conversations.core import principals
from conversations.core.errors import Conflict, NotFound
from conversations.events.log import bounded_reads
from conversations.events.types.redaction import ID_ERASED, REDACTED
from conversations.import_export.formats.switchboard import FORMAT, WITHOUT_DIGEST, EventLine
from conversations.import_export.recording import encoded
from conversations.models import Conversation, Event, Meta

_COLUMNS = "seq,kind,at,principal,event_id,run,turn,salt,digest,hash,erased_by,body"
_EVENTS = "FROM conversations_event WHERE conversation_id=%s AND seq<=%s"


def export(key: str, *, progress: Callable[[int, int], None] = lambda done, of: None) -> Iterator[bytes]:
    """Yield one line after another, each with its line break. Later events are not included.

    Raises NotFound for a conversation that does not exist (or is still being imported), and at the end Conflict if
    words were taken out meanwhile: the event that names their tombstones, without which nobody accepts them, is a later
    one.
    """
    conversation = Conversation.objects.visible().filter(key=key).select_related("parent").first()
    if conversation is None:
        raise NotFound(f"there is no conversation {key!r}")
    yield encoded(_header(conversation)) + b"\n"
    seq = 0
    while page := _page(conversation, seq):
        for row in page:
            yield encoded(_line(*row)) + b"\n"
        seq = page[-1][0]
        progress(seq, conversation.head_seq)
    if seq < conversation.head_seq:
        raise NotFound(f"the events of {key!r} after {seq} no longer exist: it has been removed")
    if _is_redacted_since(conversation):
        raise Conflict("events were redacted while they were being exported: export again", code="redacted")


def _page(conversation: Conversation, after: int) -> list[bounded_reads.Row]:
    """Read the events after a seq, with the connection of this thread: each page may be read by another one."""
    bounds = [conversation.pk, conversation.head_seq]
    with connection.cursor() as cursor:
        return next(bounded_reads.pages(cursor, _COLUMNS, _EVENTS, bounds, after=after), [])


def _is_redacted_since(conversation: Conversation) -> bool:
    """Return whether words were taken out after this conversation's row was read."""
    later = Event.objects.filter(conversation=conversation, seq__gt=conversation.head_seq)
    by = later.filter(kind__in=(REDACTED, ID_ERASED)).values_list("principal", flat=True)
    return any(map(principals.is_people, by))


def _header(conversation: Conversation) -> dict[str, object]:
    epoch = Meta.objects.filter(name="epoch").values_list("value", flat=True).first() or ""
    head = {"epoch": epoch, "head_seq": conversation.head_seq, "head_hash": conversation.head_hash}
    if conversation.key_digest:
        salt = bytes(conversation.key_salt).hex() if conversation.key_salt is not None else None
        head |= {"key_salt": salt, "key_digest": conversation.key_digest}
    forked = _forked_from(conversation)
    format_ = FORMAT if conversation.key_digest else WITHOUT_DIGEST
    head |= {"forked_from": forked} if forked else {}
    return {"format": format_, "conversation_id": conversation.key, **head}


def _forked_from(conversation: Conversation) -> dict[str, object] | None:
    """Return the parent of a fork; for a fork that was imported without its parent, as its own event says."""
    if conversation.forked_at is None:
        return None
    if conversation.parent is not None:
        return {"conversation_id": conversation.parent.key, "seq": conversation.forked_at}
    events = Event.objects.filter(conversation=conversation, kind__in=("conversation.forked", "conversation.opened"))
    bodies = [json.loads(body) for body in events.order_by("-seq").values_list("body", flat=True)]
    parent = next((str(body["parent"]) for body in bodies if body.get("parent")), None)
    return {"conversation_id": parent, "seq": conversation.forked_at} if parent else None


def _line(
    seq: int, kind: str, at: int, principal: str, event_id: str | None, run: str | None, turn: int | None,
    salt: bytes | None, digest: str, hash_: str, erased_by: str | None, body: str,
) -> EventLine:  # fmt: skip
    return EventLine(
        seq=seq, kind=kind, at=at, principal=principal, event_id=event_id, run=run, turn=turn, body=body,
        salt=bytes(salt).hex() if salt is not None else None, digest=digest, hash=hash_, erased_by=erased_by,
    )  # fmt: skip
