"""Check whether another person answered while a message was being written, so that its author is asked first."""

import json

from conversations.core.errors import TooLate
from conversations.core.micros import to_datetime
from conversations.core.principals import Principal
from conversations.models import Conversation, Event

CODE = "answered_meanwhile"


def reject_if_answered(principal: Principal, conversation: str, envelope: str, seen_seq: int) -> None:
    """Raise TooLate if another person spoke after the last event the author had seen, as themselves or as someone else.

    Called inside the action's transaction, with the conversation locked, so of two people who send at once the second
    is asked. A message that is already stored under this envelope's id is a repetition and not checked.
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
    message = f"{event.principal} replied{whose} at {at:%Y-%m-%d %H:%M:%S} UTC while you were typing: event {event.seq}"
    return TooLate(message, code=CODE, did="answered", by=event.principal, at=at.isoformat(), seq=event.seq)
