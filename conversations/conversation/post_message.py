"""Send a message as a person: the message, its posts, the run it starts and the audit entry together, stored by
`log.append` (`events/log/append.py`).

As oneself, or, by a grant and with a reason, as an agent or as the system. Whoever is named as the sender, the event's
principal is the person, and `metadata.sent_by` shows agents who sent it, with the reason. A caller can omit neither.
"""

import json
from typing import Literal, NamedTuple, get_args

from conversations.access import grants
from conversations.access.action_context import audited_action, check_reason
from conversations.access.audit import chain
from conversations.access.grants import SPEAK_AS
from conversations.access.permissions import Who, principal_of
from conversations.core.errors import IdReused, Invalid, TooLate
from conversations.core.ids import derived_id
from conversations.core.micros import to_datetime
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.events.log.records import NewEvent, Stored
from conversations.events.payload import MAX_KEY, clean_text
from conversations.models import Conversation, Event
from switchboard import topics

MAX_CONTENT = 100_000  # characters

When = Literal["after_run", "next_step"]

Body = dict[str, object]


class OutgoingMessage(NamedTuple):
    """A validated message: `kind` and `name` are the recipient's; `is_another`: not sent as oneself."""

    conversation: str
    sender: str
    kind: str
    name: str
    content: str
    reason: str
    is_another: bool
    when: str = "after_run"

    @property
    def recipient(self) -> str:
        """Return the recipient as envelopes write it."""
        return f"{self.kind}:{self.name}"


def post(
    by: Who, conversation: str, *,
    recipient: str, content: str, client_id: str, sender: str = "", reason: str = "", title: str = "",
    seen_seq: int | None = None, anyway: bool = False, when: str = "after_run",
) -> Stored:  # fmt: skip
    """Send a message; the same `client_id` again returns the same event.

    `recipient` is `agent:NAME` or `chat:CONVERSATION`. `sender` is empty or one's own `user:NAME`, or `agent:NAME` or
    `system`, which require a grant and a reason. A conversation that does not exist is opened with `title`. `seen_seq`
    is the last event the author had seen: if another person has spoken since, TooLate is raised, unless `anyway`.
    `when` an active agent gets it: after its run, or at its next step. Raises Invalid with the field, IdReused if the
    client id was used for other text, NotAllowed.
    """
    own = own_name(principal_of(by))
    message = _checked(conversation, sender or own, own, recipient, content, client_id, reason)
    message = message._replace(when=_when(when))
    verb, acting_as = ("speak_as", message.sender) if message.is_another else ("send", "")
    target = f"conversation:{conversation}"
    with audited_action(by, verb, target, right="send", acting_as=acting_as) as principal:
        if message.is_another:
            grants.require(by, SPEAK_AS, message.sender)
        envelope = derived_id(f"{principal}\0{conversation}\0{client_id}")
        if seen_seq is not None and not anyway:
            _reject_if_answered(principal, conversation, envelope, seen_seq)
        events = _events(envelope, message, principal)
        if title:
            events.insert(0, _opening(envelope, message, title, principal))
        stored = log.append(events)[1 if title else 0]
        if stored.clashes:
            raise IdReused("this client_id was already used for a different message", field="client_id")
        if stored.is_new:
            correlation = {"conversation": conversation, "envelope": envelope, "seq": stored.seq}
            chain.add_entry(
                principal, verb, target, acting_as=acting_as, reason=message.reason, correlation=correlation
            )
    return stored


def own_name(principal: Principal) -> str:
    """Return the sender name of someone who speaks as themselves."""
    return str(principal) if principal == SYSTEM else f"user:{principal.name}"


def _reject_if_answered(principal: Principal, conversation: str, envelope: str, seen_seq: int) -> None:
    """Raise TooLate if another person spoke after the last event the author had seen, as themselves or as someone else.

    Called with the action's transaction open, and locks the conversation, so of two people who send at once the second
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
    by = event.principal
    return TooLate(message, code="answered_meanwhile", did="answered", by=by, at=at.isoformat(), seq=event.seq)


def _events(envelope: str, message: OutgoingMessage, principal: Principal) -> list[NewEvent]:
    """Return one event per topic of the message, all with the same envelope, so it is stored once."""
    metadata = {"sent_by": str(principal)} if message.sender != str(principal) else {}
    metadata |= {"reason": message.reason} if message.reason else {}
    metadata |= {"when": message.when} if message.when != "after_run" else {}
    payload: Body = {"id": envelope, "conversation_id": message.conversation, "sender": message.sender}
    payload |= {"recipient": message.recipient, "type": "message", "content": message.content, "metadata": metadata}
    return log.from_people(topics.of_message(message.conversation, message.name), payload, principal)


def _opening(envelope: str, message: OutgoingMessage, title: str, principal: Principal) -> NewEvent:
    handler = message.name if message.kind == "agent" else None
    opened: Body = {"event": "conversation.opened", "id": f"{envelope}-opened", "title": title, "handler": handler}
    return log.from_internal(message.conversation, opened, principal)


def _checked(
    conversation: str, sender: str, own: str, recipient: str, content: str, client_id: str, reason: str
) -> OutgoingMessage:
    try:
        kind, name = topics.recipient_of(recipient)
    except ValueError:
        kind = name = ""
    if not name or len(name) > MAX_KEY:
        raise Invalid("must be agent:NAME or chat:CONVERSATION", field="recipient")
    if kind == "chat" and name != conversation:
        raise Invalid("must be this conversation's own chat", field="recipient")
    if not content.strip():
        raise Invalid("must not be empty", field="content")
    if len(content) > MAX_CONTENT:
        raise Invalid(f"must be at most {MAX_CONTENT:,} characters; got {len(content):,}", field="content")
    if not 1 <= len(client_id) <= 100:
        raise Invalid("must be 1 to 100 characters", field="client_id")
    if not 1 <= len(conversation) <= MAX_KEY or clean_text(conversation) != conversation:
        raise Invalid(f"must be 1 to {MAX_KEY} characters", field="conversation_id")
    speaker, reason = _speaker(sender, own), reason.strip()
    check_reason(reason)
    if speaker != own and not reason:
        raise Invalid(f"a reason is required: you speak as {speaker}", field="reason")
    return OutgoingMessage(conversation, speaker, kind, name, content, reason, speaker != own)


def _when(when: str) -> str:
    if when not in get_args(When):
        raise Invalid(f"must be one of {', '.join(get_args(When))}", field="when")
    return when


def _speaker(sender: str, own: str) -> str:
    """Return the sender to use. Raises if it is another person: nobody speaks as one."""
    kind, _, name = sender.strip().partition(":")
    if sender in (own, "system"):
        return sender
    if kind != "agent" or not name.strip() or clean_text(name) != name:
        raise Invalid("must be your own name, agent:NAME or system", field="sender")
    speaker = f"agent:{name.strip()}"
    if len(speaker) > MAX_KEY:
        raise Invalid(f"must be at most {MAX_KEY} characters", field="sender")
    return speaker
