"""What a conversation is called and what was said last → its head's captions (law I)."""

from __future__ import annotations

from conversations.core.plain_text import short_title
from conversations.events.payload import ParsedPayload
from conversations.events.projections.participants import kind_of
from conversations.events.projections.row_changes import ConversationHead

GREETED = 2  # messages after which an agent's greeting stays the title


def speak(head: ConversationHead, payload: ParsedPayload, principal: str) -> None:
    """Note what was said last; the first words are the title of a conversation that was given none."""
    if not head.title or head.messages <= GREETED:
        _name(head, payload)
    head.says, head.says_by = payload, principal


def _name(head: ConversationHead, payload: ParsedPayload) -> None:
    """Name it by these words: the first, or a person's first answer to the greeting of an agent."""
    kind = kind_of(payload.speaker) if payload.speaker else ""
    if not head.title and kind != "system":
        head.title = short_title(payload.words)
    elif head.title and kind == "person" and payload.words.strip():
        head.settle()
        if head.last_sender.startswith("agent:") and head.title == short_title(head.last_line):
            head.title = short_title(payload.words)
