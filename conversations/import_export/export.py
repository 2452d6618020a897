"""Export a conversation as the lines of §5: a fixed head, then page by page, never one long read."""

import json
from collections.abc import Callable, Iterator

from conversations.core.errors import NotFound
from conversations.import_export.formats.switchboard import FORMAT, WITHOUT_DIGEST, EventLine
from conversations.import_export.recording import encoded
from conversations.models import Conversation, Event, Meta

PAGE = 500  # events a query


def export(key: str, *, progress: Callable[[int, int], None] = lambda done, of: None) -> Iterator[bytes]:
    """Yield one line after another, each with its line break. Later events are not included.

    Raises NotFound for a conversation that does not exist (or is still being imported).
    """
    conversation = Conversation.objects.visible().filter(key=key).select_related("parent").first()
    if conversation is None:
        raise NotFound(f"there is no conversation {key!r}")
    yield encoded(_header(conversation)) + b"\n"
    seq = 0
    while seq < conversation.head_seq:
        page = list(
            Event.objects.filter(conversation_id=conversation.pk, seq__gt=seq, seq__lte=conversation.head_seq).order_by(
                "seq"
            )[:PAGE]
        )
        if not page:
            raise NotFound(f"the events of {key!r} after {seq} no longer exist: it has been removed")
        for event in page:
            yield encoded(_row(event)) + b"\n"
        seq = page[-1].seq
        progress(seq, conversation.head_seq)


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


def _row(event: Event) -> EventLine:
    return EventLine(
        seq=event.seq,
        kind=event.kind,
        at=event.at,
        principal=event.principal,
        event_id=event.event_id,
        run=event.run,
        turn=event.turn,
        body=event.body,
        salt=bytes(event.salt).hex() if event.salt is not None else None,
        digest=event.digest,
        hash=event.hash,
        erased_by=event.erased_by,
    )
