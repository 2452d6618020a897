"""Who controls a conversation (law I): paused or not, and independently whether a person holds it.

| event, by a person or the system | state | owner |
|---|---|---|
| conversation.paused | paused | |
| conversation.resumed | open | |
| conversation.taken_over | | who did it |
| conversation.handed_back | | nobody: the agents |

`paused_seq` and `owned_seq` name the event that says who, when and why; 0 while it is not so.
"""

from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges
from conversations.events.projections.runs import RunEventFields, doer_of, with_fields


def paused(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Pause it."""
    head.state, head.paused_seq = "paused", head.head_seq


def resumed(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Open it again."""
    head.state, head.paused_seq = "open", 0


@with_fields
def taken_over(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Give it to who took it over."""
    head.owner, head.owned_seq = doer_of(event, fields), head.head_seq


def handed_back(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Give it back to the agents."""
    head.owner, head.owned_seq = "", 0
