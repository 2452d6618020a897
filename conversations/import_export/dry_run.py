"""What an import would store, counted by the same fold as in the log, without storing it. For `import --dry-run`."""

import time

from conversations.core import principals
from conversations.core.errors import Invalid
from conversations.events import log, payload, projections
from conversations.events.projections import ConversationHead, EventFacts, RowChanges
from conversations.import_export.import_lines import ImportedConversation, ImportLine, line_of

_PRINCIPAL = principals.import_principal("dry-run")


class DryRun:
    """Receives the lines of an import (`import_lines.LineReceiver`) and counts them. Existing conversations
    are not looked up."""

    def __init__(self) -> None:
        self._counted: list[ImportedConversation] = []
        self._head = ConversationHead(0, "")
        self._changes = RowChanges(is_whole=True)
        self._ids: set[str] = set()

    def receive(self, lines: list[bytes]) -> None:
        """Count these lines. Raises as an import does."""
        for text in lines:
            line = line_of(text)
            if line.conversation is not None:
                self._close()
                self._head = ConversationHead(len(self._counted) + 1, line.conversation)
                self._changes, self._ids = RowChanges(is_whole=True), set()
            elif line.end is None:
                self._count(line)

    def finish(self) -> list[ImportedConversation]:
        """Return the counts of each conversation."""
        self._close()
        return self._counted

    def discard(self) -> None:
        """Do nothing: nothing is stored."""

    def _count(self, line: ImportLine) -> None:
        if not self._head.key:
            raise Invalid("a conversation line must come before the first event")
        body = bytes(line.payload)
        event = log.from_bus(f"stream:{self._head.key}", line.id, body.decode(), payload.parse(body), _PRINCIPAL)
        if event.event_id is not None and event.event_id in self._ids:
            return
        self._ids.add(event.event_id or "")
        self._head.head_seq += 1
        facts = EventFacts(event.payload, time.time_ns() // 1000, event.principal, None, event.body)
        projections.fold(self._changes, self._head, event.kind, facts)

    def _close(self) -> None:
        head = self._head
        if head.head_seq:
            counts = (head.head_seq, head.messages, head.tool_calls, head.errors)
            self._counted.append(ImportedConversation(head.key, *counts))
        self._head = ConversationHead(0, "")
