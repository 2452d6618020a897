"""Annotate an event: a thumb, a note, or both (§3.1). Annotations are part of the record.

Everyone who may do more than view may annotate; an annotation changes nothing except what is shown below the event. A
person's last thumb on an event counts, notes add up. The same client id again returns the same event.
"""

import json
from typing import NamedTuple

from conversations.access.action_context import audited_action, event_author, find_conversation
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import IdReused, Invalid
from conversations.core.ids import derived_id
from conversations.core.principals import Principal
from conversations.events import log, payload
from conversations.events.log import annotation_reads
from conversations.events.log.records import Stored
from conversations.models import Conversation, Event

MAX_TEXT = annotation_reads.LETTERS
KIND = "event.annotated"
NEVER_ANNOTATED = (KIND, "token")
THUMBS = ("up", "down", "")  # the last withdraws it


class _Annotated(NamedTuple):
    """The annotated event, as far as it is needed."""

    seq: int
    speaker: str


def annotate(
    by: Who, conversation: str, about: int, *, client_id: str, thumb: str | None = None, text: str = ""
) -> Stored:
    """Annotate event `about`. `thumb` is up, down, empty (withdraw it) or None (leave it as it is).

    Raises Invalid with the field, NotFound, and IdReused if the client id was used for another annotation.
    """
    text = _checked(thumb, text.strip(), client_id)
    target = f"conversation:{conversation}"
    with audited_action(by, "annotate", target, right="annotate") as principal:
        row = find_conversation(conversation)
        event = _find(row, about)
        writer, doer = event_author(principal)
        id_ = _id_of(principal, conversation, client_id)
        if thumb == "" and not text:
            _require_thumb(row, about, principal, id_)
        fields: dict[str, object] = {} if thumb is None else {"thumb": thumb}
        fields |= {"text": text} if text else {}
        fields |= {"speaker": event.speaker} if event.speaker else {}
        body = {"event": KIND, "id": id_, "conversation_id": conversation, "about": event.seq, **fields, **doer}
        stored = log.append([log.from_internal(conversation, body, writer)])[0]
        if stored.clashes:
            raise IdReused("this client_id was already used for a different annotation", field="client_id")
        if stored.is_new:
            correlation = {"conversation": conversation, "seq": stored.seq, "about": event.seq}
            chain.add_entry(principal, "annotate", target, correlation=correlation)
    return stored


def _checked(thumb: str | None, text: str, client_id: str) -> str:
    """Return the note as it is stored. Raises Invalid."""
    if thumb is not None and thumb not in THUMBS:
        raise Invalid("must be up, down or empty", field="thumb")
    if thumb is None and not text:
        raise Invalid("must not be empty without a thumb", field="text")
    if len(text) > MAX_TEXT:
        raise Invalid(f"must be at most {MAX_TEXT:,} characters; got {len(text):,}", field="text")
    if not 1 <= len(client_id) <= 100:
        raise Invalid("must be 1 to 100 characters", field="client_id")
    return payload.clean_text(text)


def _find(conversation: Conversation, seq: int) -> _Annotated:
    """Return the event to annotate: any but an annotation, or a token, whose output is annotated instead."""
    stored = Event.objects.filter(conversation=conversation, seq=seq).values_list("kind", "body").first()
    if stored is None:
        raise Invalid(f"is not an event of this conversation, which has {conversation.head_seq:,}", field="about")
    kind, body = stored
    if kind == KIND:
        raise Invalid("must not be an annotation", field="about")
    if kind == "token":
        raise Invalid("must not be part of an answer: annotate the answer's output instead", field="about")
    return _Annotated(seq, payload.parse(body.encode("utf-8", "replace")).speaker)


def _require_thumb(conversation: Conversation, about: int, principal: Principal, event_id: str) -> None:
    """Raise Invalid if there is no thumb to withdraw, unless this is a repetition of a withdrawal."""
    if annotation_reads.thumb_of(conversation.pk, about, str(principal)):
        return
    if not Event.objects.filter(conversation=conversation, event_id=event_id).exists():
        raise Invalid("must not be empty: you have no thumb on this event", field="thumb")


def _id_of(principal: Principal, conversation: str, client_id: str) -> str:
    return derived_id(json.dumps([KIND, str(principal), conversation, client_id]))
