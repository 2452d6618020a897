"""Who takes part: whoever speaks or is spoken to by name."""

from conversations.events.payload import ParsedPayload
from conversations.events.projections.row_changes import ConversationHead, RowChanges


def add_participants(changes: RowChanges, head: ConversationHead, payload: ParsedPayload, *, lets_in: bool) -> None:
    """Note the sender and the recipient; `lets_in`: an agent spoken to may view the conversation (`token_access`)."""
    meeting = (head.id, payload.sender, payload.agent, payload.recipient, lets_in)
    if meeting in changes.met:
        return
    changes.met.add(meeting)
    if payload.speaker:
        changes.participants[head.id, payload.speaker] = kind_of(payload.speaker)
    recipient = (payload.recipient or "")[:200]
    if recipient and not recipient.startswith("chat:"):
        changes.participants[head.id, recipient] = kind_of(recipient)
        if lets_in and not _is_same(payload.sender or payload.agent or "", payload.recipient or ""):
            changes.named.add((head.id, recipient))


def kind_of(name: str) -> str:
    """Return what a name on the wire stands for: agent, system or person."""
    if name.startswith("agent:"):
        return "agent"
    return "system" if name == "system" else "person"


def _is_same(name: str, other: str) -> bool:
    """Return whether two names are one agent's: an agent that speaks to itself was named by nobody (§3.7)."""
    return name.removeprefix("agent:") == other.removeprefix("agent:")
