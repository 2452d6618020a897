"""What agents spend in a conversation → sums by agent and model: of turns, and of tool calls."""

from conversations.events.projections.row_changes import ConversationHead, RowChanges, UsageRow

INSIDE = '"parent_call":'  # in a body of ours; within a text its quotes would be escaped


def of_agent(
    changes: RowChanges, head: ConversationHead, agent: str, model: str = "", *, is_demo: bool = False
) -> UsageRow:
    """Return what this batch adds to the sums of an agent; without a model those of its tools."""
    key = f"{agent}\n{model}\n{'1' if is_demo else '0'}"
    row = changes.usages.get((head.id, key))
    if row is None:
        row = changes.usages[head.id, key] = UsageRow(head.id, key, agent, model, is_demo)
    return row


def add_call(changes: RowChanges, head: ConversationHead, agent: str) -> None:
    """Count a call that began."""
    of_agent(changes, head, agent).calls += 1


def add_time(changes: RowChanges, head: ConversationHead, agent: str, ms: float | None, body: str) -> None:
    """Count how long a call took; what happened inside another one is in that one's time."""
    if ms and INSIDE not in body:
        of_agent(changes, head, agent).worked_ms += round(ms)
