"""Every event type, declared beside its schema; `registry` is the table of them. A new module is imported here."""

from conversations.events.types import (
    annotations,
    approvals,
    conversations,
    messages,
    redaction,
    responses,
    runs,
    tool_calls,
    transport,
)

__all__ = [
    "annotations", "approvals", "conversations", "messages", "redaction", "responses", "runs", "tool_calls",
    "transport",
]  # fmt: skip
