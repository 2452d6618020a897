"""Annotations of people → a row each, found by the event that it is about (law I). A person's last thumb counts."""

from __future__ import annotations

import msgspec

from conversations.core import principals
from conversations.events.payload import clean_text
from conversations.events.projections.row_changes import AnnotationRow, ConversationHead, EventFacts, RowChanges

WITHDRAWN = "withdrawn"
_THUMBS = {"up": "up", "down": "down", "": WITHDRAWN}


class AnnotationFields(msgspec.Struct, kw_only=True):
    """What the fold reads of an annotation."""

    about: int = 0
    thumb: str | None = None
    speaker: str = ""
    by: str = ""


_decoder = msgspec.json.Decoder(AnnotationFields)


def annotated(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what it is about, whose it is and its thumb; its words stay in the event. One that names no earlier event
    is about nothing."""
    try:
        fields = _decoder.decode(event.body)
    except msgspec.DecodeError:
        return
    if not 0 < fields.about < head.head_seq:
        return
    author = clean_text(principals.doer(event.principal, fields.by))[:160]
    thumb = _THUMBS.get(fields.thumb, "") if fields.thumb is not None else ""
    row = AnnotationRow(head.id, head.head_seq, fields.about, author, thumb, clean_text(fields.speaker)[:200], event.at)
    changes.annotations.append(row)
