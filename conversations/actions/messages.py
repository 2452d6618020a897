"""A person speaks in a conversation (flow c): the message, its posts, the run it starts and the audit together.

As oneself, or by a grant and with a reason as an agent or as the system. Whomever it names as its sender, the event's
principal is who did it, and `metadata.sent_by` says so to agents, beside the reason. A caller can leave neither out.
"""

import hashlib
import json
from typing import NamedTuple

from conversations import audit, envelopes, grants, log
from conversations.actions import answered
from conversations.actions.acting import acting
from conversations.envelopes import MAX_KEY
from conversations.errors import IdReused, Invalid
from conversations.grants import SPEAK_AS
from conversations.log.events import NewEvent, Stored
from conversations.principals import SYSTEM, Principal
from conversations.rights import Who, principal_of
from switchboard import topics

MAX_CONTENT = 100_000  # characters
MAX_REASON = 2000  # characters

Body = dict[str, object]


class Words(NamedTuple):
    """What is said, checked: `kind` and `name` are the recipient's; `is_another`: not as oneself."""

    conversation: str
    sender: str
    kind: str
    name: str
    content: str
    reason: str
    is_another: bool

    @property
    def recipient(self) -> str:
        """The recipient as the envelope names it."""
        return f"{self.kind}:{self.name}"


def post(
    by: Who, conversation: str, *,
    recipient: str, content: str, client_id: str, sender: str = "", reason: str = "", title: str = "",
    seen_seq: int | None = None, anyway: bool = False,
) -> Stored:  # fmt: skip
    """Say something; the same `client_id` again answers the same event.

    `recipient` is `agent:NAME` or `chat:CONVERSATION`; `sender` is empty or one's own `user:NAME`, or `agent:NAME` or
    `system`, which take a grant and a reason. A conversation that is not there is opened, under `title`. `seen_seq` is
    what the writer had seen when they began: when another person has spoken since, `TooLate` is raised, unless it is
    sent `anyway`. Raises `Invalid` with the field, `IdReused` when the client id came with other words, `NotAllowed`.
    """
    own = own_name(principal_of(by))
    words = _checked(conversation, sender or own, own, recipient, content, client_id, reason)
    verb, acting_as = ("speak_as", words.sender) if words.is_another else ("send", "")
    target = f"conversation:{conversation}"
    with acting(by, verb, target, right="send", acting_as=acting_as) as principal:
        if words.is_another:
            grants.require(by, SPEAK_AS, words.sender)
        mark = hashlib.sha256(f"{principal}\0{conversation}\0{client_id}".encode()).hexdigest()
        envelope = f"{mark[:8]}-{mark[8:12]}-8{mark[13:16]}-8{mark[17:20]}-{mark[20:32]}"
        if seen_seq is not None and not anyway:
            answered.check(principal, conversation, envelope, seen_seq)
        events = _events(envelope, words, principal)
        if title:
            events.insert(0, _opening(envelope, words, title, principal))
        stored = log.append(events)[1 if title else 0]
        if stored.clashes:
            raise IdReused("this client_id came before with other words", field="client_id")
        if stored.is_new:
            told = {"conversation": conversation, "envelope": envelope, "seq": stored.seq}
            audit.enter(principal, verb, target, acting_as=acting_as, reason=words.reason, correlation=told)
    return stored


def own_name(principal: Principal) -> str:
    """Answer how somebody is named who speaks as oneself."""
    return str(principal) if principal == SYSTEM else f"user:{principal.name}"


def _events(envelope: str, words: Words, principal: Principal) -> list[NewEvent]:
    """Make one event for each topic the message goes to: the same envelope, so it is stored once."""
    metadata = {"sent_by": str(principal)} if words.sender != str(principal) else {}
    metadata |= {"reason": words.reason} if words.reason else {}
    payload: Body = {"id": envelope, "conversation_id": words.conversation, "sender": words.sender}
    payload |= {"recipient": words.recipient, "type": "message", "content": words.content, "metadata": metadata}
    body = json.dumps(payload, ensure_ascii=False)
    said = envelopes.read(body.encode())
    addresses = topics.of_message(words.conversation, words.name)
    return [log.of_payload(topic, f"{envelope}{n or ''}", body, said, principal) for n, topic in enumerate(addresses)]


def _opening(envelope: str, words: Words, title: str, principal: Principal) -> NewEvent:
    handler = words.name if words.kind == "agent" else None
    opened: Body = {"event": "conversation.opened", "id": f"{envelope}-opened", "title": title, "handler": handler}
    return log.of_ours(words.conversation, opened, principal)


def _checked(
    conversation: str, sender: str, own: str, recipient: str, content: str, client_id: str, reason: str
) -> Words:
    try:
        kind, name = topics.recipient_of(recipient)
    except ValueError:
        kind = name = ""
    if not name or len(name) > MAX_KEY:
        raise Invalid("expected agent:NAME or chat:CONVERSATION", field="recipient")
    if kind == "chat" and name != conversation:
        raise Invalid("expected this conversation's own chat", field="recipient")
    if not content.strip():
        raise Invalid("expected some words", field="content")
    if len(content) > MAX_CONTENT:
        raise Invalid(f"expected at most {MAX_CONTENT:,} characters; got {len(content):,}", field="content")
    if not 1 <= len(client_id) <= 100:
        raise Invalid("expected 1 to 100 characters", field="client_id")
    if not 1 <= len(conversation) <= MAX_KEY or envelopes.fit(conversation) != conversation:
        raise Invalid(f"expected 1 to {MAX_KEY} characters", field="conversation_id")
    speaker, reason = _speaker(sender, own), reason.strip()
    if len(reason) > MAX_REASON:
        raise Invalid(f"expected at most {MAX_REASON:,} characters; got {len(reason):,}", field="reason")
    if speaker != own and not reason:
        raise Invalid(f"expected a reason: you speak as {speaker}", field="reason")
    return Words(conversation, speaker, kind, name, content, reason, speaker != own)


def _speaker(sender: str, own: str) -> str:
    """Answer whom it is said as: nobody speaks as another person."""
    kind, _, name = sender.strip().partition(":")
    if sender in (own, "system"):
        return sender
    if kind != "agent" or not name.strip() or envelopes.fit(name) != name:
        raise Invalid("expected your own name, agent:NAME or system", field="sender")
    speaker = f"agent:{name.strip()}"
    if len(speaker) > MAX_KEY:
        raise Invalid(f"expected at most {MAX_KEY} characters", field="sender")
    return speaker
