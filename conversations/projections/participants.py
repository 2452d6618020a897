"""Who takes part: whoever speaks or is spoken to by name."""

from conversations.envelopes import Said
from conversations.projections.state import Fold, Head


def take_part(changes: Fold, head: Head, said: Said) -> None:
    """Note the sender and the recipient."""
    meeting = (head.id, said.sender, said.agent, said.recipient)
    if meeting in changes.met:
        return
    changes.met.add(meeting)
    if said.speaker:
        changes.participants[head.id, said.speaker] = kind_of(said.speaker)
    recipient = (said.recipient or "")[:200]
    if recipient and not recipient.startswith("chat:"):
        changes.participants[head.id, recipient] = kind_of(recipient)
        if not _is_same(said.sender or said.agent or "", said.recipient or ""):
            changes.named.add((head.id, recipient))


def kind_of(name: str) -> str:
    """Tell what a name on the wire stands for: agent, system or person."""
    if name.startswith("agent:"):
        return "agent"
    return "system" if name == "system" else "person"


def _is_same(name: str, other: str) -> bool:
    """Tell whether two names are one agent's: an agent that speaks to itself was named by nobody (design 3.7)."""
    return name.removeprefix("agent:") == other.removeprefix("agent:")
