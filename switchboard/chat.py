"""Say something to a conversation or to an agent: what the agents' tool `chat_send` does, whatever the SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from switchboard import topics
from switchboard.bus import BusMessage
from switchboard.current import get_bus
from switchboard.http_bus import HttpBus
from switchboard.ids import new_id

MAX_HOP = (1 << 31) - 1


def chat_send(recipient: str, content: str, conversation_id: str | None = None) -> dict[str, Any]:
    """Send a message to a conversation or to another agent.

    recipient: "chat:" and a conversation's id, or "agent:" and an agent's name.
    content: what to say; not blank.
    conversation_id: where to say it, for an "agent:" recipient; left out, the conversation of the environment.
    """
    return send_message(recipient, content, conversation_id=conversation_id)


def send_message(
    recipient: str,
    content: str,
    *,
    conversation_id: str | None = None,
    context: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Publish a message envelope; answer `{"ok": True, "envelope_id", "published_to": [topics]}`.

    It goes to `chat:{conversation}`, and for `agent:{Name}` also to `chat:{Name}`. The conversation is the `chat:`
    suffix, else `conversation_id`, else the context's, else that of `CHAT_TOOL_CONVERSATION_ID`. The sender is the
    context's `agent`, else `AGENT_NAME`, else `agent:unknown`.

    `context` is what a run knows: `conversation_id`, `agent`, and `metadata` of the message it answers. From a run,
    and when `metadata` has a `hop`, the envelope's `hop` is one more: that is how endless replies are ended.
    Raises ValueError for a wrong recipient, blank content or no conversation, and what the bus raises.
    """
    context_of_run = context or {}
    kind, suffix = topics.recipient_of(recipient)
    if not content.strip():
        raise ValueError("content must not be blank")
    conversation = suffix if kind == "chat" else _conversation(conversation_id, context_of_run)
    envelope = {
        "id": new_id(),
        "conversation_id": conversation,
        "sender": f"agent:{_agent(context_of_run)}",
        "recipient": f"{kind}:{suffix}",
        "type": "message",
        "content": content.strip(),
        "metadata": _metadata(metadata, context),
        "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    addresses = topics.of_message(conversation, suffix)
    for topic in addresses:  # all, before the first is published
        topics.check(topic)
    _publish([BusMessage(topic=topic, payload=envelope) for topic in addresses])
    return {"ok": True, "envelope_id": envelope["id"], "published_to": addresses}


def _publish(messages: Sequence[BusMessage]) -> None:
    """Publish over HTTP in one request, so that nobody who sends again after an error says half of it twice."""
    bus = get_bus()
    if isinstance(bus, HttpBus):
        for error in filter(None, bus.publish_all(messages)):
            raise error
        return
    for message in messages:
        bus.publish(message.topic, message)


def _conversation(explicit: str | None, context: Mapping[str, Any]) -> str:
    for candidate in (explicit, context.get("conversation_id"), os.environ.get("CHAT_TOOL_CONVERSATION_ID")):
        if isinstance(candidate, str) and candidate.strip():
            return candidate.strip()
    raise ValueError("conversation_id not available for agent recipient")


def _agent(context: Mapping[str, Any]) -> str:
    for candidate in (context.get("agent"), os.environ.get("AGENT_NAME")):
        if isinstance(candidate, str) and (name := candidate.strip().removeprefix("agent:").strip()):
            return name
    return "unknown"


def _metadata(metadata: Mapping[str, Any] | None, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Copy the metadata; increase the hop if a run answers."""
    copied = dict(metadata or {})
    if context is None and "hop" not in copied:
        return copied
    answered = (context or {}).get("metadata")
    before = copied if "hop" in copied else answered if isinstance(answered, Mapping) else {}
    hop = before.get("hop")
    if not isinstance(hop, int) or isinstance(hop, bool) or hop < 0:
        hop = 0
    return copied | {"hop": min(hop + 1, MAX_HOP)}
