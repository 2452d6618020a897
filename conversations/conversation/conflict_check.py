"""Whether somebody answered while a person wrote: then the person is asked before their words are stored."""

import json

from conversations.core.errors import TooLate
from conversations.core.micros import to_datetime
from conversations.core.principals import Principal
from conversations.models import Conversation, Event

CODE = "answered_meanwhile"


def reject_if_answered(principal: Principal, conversation: str, envelope: str, seen_seq: int) -> None:
    """Raise `TooLate` when another person spoke after what the writer had seen, as themselves or as somebody else.

    Inside the action's transaction: the conversation is locked, so of two who send at once the second is asked. A
    message that is stored already under this envelope's id is not asked about: it is only sent again.
    """
    row = Conversation.objects.visible().filter(key=conversation).first()
    if row is None:
        return
    Conversation.objects.locked(row.pk)
    events = Event.objects.filter(conversation=row)
    if events.filter(event_id=envelope).exists():
        return
    spoken = events.filter(seq__gt=seen_seq, kind="message", principal__startswith="user:")
    newest = spoken.exclude(principal=str(principal)).order_by("-seq").first()
    if newest is not None:
        raise _late(newest)


def _late(event: Event) -> TooLate:
    at = to_datetime(event.at)
    speaker = str(json.loads(event.body).get("sender") or "")
    whose = f" as {speaker}" if speaker != event.principal else ""
    message = f"{event.principal} replied{whose} at {at:%H:%M:%S} UTC while you were typing: event {event.seq}"
    return TooLate(message, code=CODE, did="answered", by=event.principal, at=at.isoformat(), seq=event.seq)
