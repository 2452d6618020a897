"""Messages of agents to persons → since when a person has not answered, in the participants' rows (law I)."""

from conversations.core import principals
from conversations.events.payload import MAX_KEY
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges


def ask_or_answer(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note an agent's message to a person, until that person says anything, also under another name. What an import
    or a fork's copy repeats waits for nobody."""
    if principals.is_imported(event.principal) or head.head_seq <= head.copied_seq:
        return
    payload = event.payload
    speaker, recipient = payload.speaker, (payload.recipient or "")[:MAX_KEY]
    for name in {speaker, event.principal}:
        if name.startswith("user:"):
            changes.answered_by.add((head.id, name))
            changes.asked_at.pop((head.id, name), None)
    if recipient.startswith("user:") and speaker.startswith("agent:") and not event.principal.startswith("user:"):
        changes.asked_at.setdefault((head.id, recipient), event.at)
