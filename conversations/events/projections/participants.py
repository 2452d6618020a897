"""Who takes part: whoever speaks or is spoken to by name, and whom of them control messages can reach."""

from conversations.core import principals
from conversations.events.payload import MAX_KEY
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges


def add_participants(changes: RowChanges, head: ConversationHead, event: EventFacts, *, lets_in: bool) -> None:
    """Note the sender and the recipient; `lets_in`: an agent spoken to may view the conversation (`token_access`)."""
    payload, is_heard = event.payload, not principals.is_imported(event.principal)
    add_speaker(changes, head, event)
    recipient = (payload.recipient or "")[:MAX_KEY]
    if recipient and not recipient.startswith("chat:"):
        changes.participants[head.id, recipient] = kind_of(recipient)
        if is_heard:
            changes.reachable.add((head.id, recipient))
        if lets_in and not _is_same(payload.sender or payload.agent or "", payload.recipient or ""):
            changes.named.add((head.id, recipient))


def add_speaker(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note who spoke, or acted, if any name is given; once for all events of a batch that give the same. A name that a
    run of ours alone speaks under may be that of an agent inside a tool."""
    payload = event.payload
    meeting = (head.id, payload.sender, payload.agent, event.principal, event.run is None)
    if meeting in changes.met:
        return
    changes.met.add(meeting)
    if not (name := payload.speaker):
        return
    changes.participants[head.id, name] = kind_of(name)
    if event.run is None and not principals.is_imported(event.principal):
        changes.reachable.add((head.id, name))


def kind_of(name: str) -> str:
    """Return what a name on the wire stands for: agent, system or person."""
    if name.startswith("agent:"):
        return "agent"
    return "system" if name == "system" else "person"


def _is_same(name: str, other: str) -> bool:
    """Return whether two names are one agent's: an agent that speaks to itself was named by nobody (§3.7)."""
    return name.removeprefix("agent:") == other.removeprefix("agent:")
