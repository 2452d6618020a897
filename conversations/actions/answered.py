"""Whether somebody answered while a person wrote: then the person is asked before their words are stored."""

import json
from datetime import UTC, datetime

from conversations.errors import TooLate
from conversations.models import Conversation, Event
from conversations.principals import Principal

CODE = "answered_meanwhile"


def check(principal: Principal, conversation: str, envelope: str, seen_seq: int) -> None:
    """Raise `TooLate` when another person spoke after what the writer had seen, as themselves or as somebody else.

    Inside the action's transaction: the conversation is locked, so of two who send at once the second is asked. A
    message that is stored already under this envelope's id is not asked about: it is only sent again.
    """
    found = Conversation.objects.visible().filter(key=conversation).first()
    if found is None:
        return
    Conversation.objects.locked(found.pk)
    events = Event.objects.filter(conversation=found)
    if events.filter(event_id=envelope).exists():
        return
    spoken = events.filter(seq__gt=seen_seq, kind="message", principal__startswith="user:")
    newest = spoken.exclude(principal=str(principal)).order_by("-seq").first()
    if newest is not None:
        raise _late(newest)


def _late(event: Event) -> TooLate:
    at = datetime.fromtimestamp(event.at / 1e6, UTC)
    speaker = str(json.loads(event.body).get("sender") or "")
    whose = f" as {speaker}" if speaker != event.principal else ""
    words = f"{event.principal} answered{whose} at {at:%H:%M:%S} UTC, while you wrote: event {event.seq}"
    return TooLate(words, code=CODE, did="answered", by=event.principal, at=at.isoformat(), seq=event.seq)
