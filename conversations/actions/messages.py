"""A person speaks in a conversation (flow c): the message, its posts, the run it starts and the audit together."""

import hashlib
import json

from conversations import audit, envelopes, log
from conversations.actions import answered
from conversations.actions.acting import acting
from conversations.envelopes import MAX_KEY
from conversations.errors import IdReused, Invalid
from conversations.log.events import NewEvent, Stored
from conversations.rights import Who, principal_of

MAX_CONTENT = 100_000  # characters


def post(
    by: Who,
    conversation: str,
    *,
    recipient: str,
    content: str,
    client_id: str,
    sender: str = "",
    title: str = "",
    seen_seq: int | None = None,
    anyway: bool = False,
) -> Stored:
    """Say something as oneself; the same `client_id` again answers the same event.

    `recipient` is `agent:NAME` or `chat:CONVERSATION`. A conversation that is not there is opened, under `title`.
    `seen_seq` is what the writer had seen when they began: when another person has spoken since, `TooLate` is raised,
    unless it is sent `anyway`.
    Raises `Invalid` with the field, `IdReused` when the client id came with other words, `NotAllowed`.
    """
    name = principal_of(by).name
    spoken = sender or f"user:{name}"
    if spoken != f"user:{name}":
        raise Invalid("expected your own name", field="sender")
    _check(conversation, recipient, content, client_id)
    with acting(by, "send", f"conversation:{conversation}", right="send") as principal:
        mark = hashlib.sha256(f"{principal}\0{conversation}\0{client_id}".encode()).hexdigest()
        envelope = f"{mark[:8]}-{mark[8:12]}-8{mark[13:16]}-8{mark[17:20]}-{mark[20:32]}"
        if seen_seq is not None and not anyway:
            answered.check(principal, conversation, envelope, seen_seq)
        payload = {"id": envelope, "conversation_id": conversation, "sender": spoken, "recipient": recipient}
        body = json.dumps({**payload, "type": "message", "content": content, "metadata": {}}, ensure_ascii=False)
        said = envelopes.read(body.encode())
        topics = [f"chat:{conversation}"]
        if recipient.startswith("agent:"):
            topics.append(f"chat:{recipient.removeprefix('agent:')}")
        events: list[NewEvent] = [
            log.of_payload(topic, f"{envelope}{n or ''}", body, said, principal) for n, topic in enumerate(topics)
        ]
        if title:
            opened: dict[str, object] = {"event": "conversation.opened", "id": f"{envelope}-opened", "title": title}
            opened["handler"] = recipient.removeprefix("agent:") if recipient.startswith("agent:") else None
            events.insert(0, log.of_ours(conversation, opened, principal))
        stored = log.append(events)[1 if title else 0]
        if stored.clashes:
            raise IdReused("this client_id came before with other words", field="client_id")
        if stored.is_new:
            told = {"conversation": conversation, "envelope": envelope, "seq": stored.seq}
            audit.enter(principal, "send", f"conversation:{conversation}", correlation=told)
    return stored


def _check(conversation: str, recipient: str, content: str, client_id: str) -> None:
    kind, _, name = recipient.partition(":")
    if kind not in ("agent", "chat") or not name.strip() or len(name) > MAX_KEY:
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
