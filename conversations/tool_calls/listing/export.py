"""Export all matching calls, newest first, as a file."""

from typing import Any

from conversations.access.list_export import ListExport
from conversations.tool_calls.listing import query
from conversations.tool_calls.listing.filters import CallFilters
from conversations.tool_calls.listing.rows import item, rows, within
from conversations.tool_calls.listing.sql_filters import CallPosition

BATCH, MAX_BATCH = 20, 320  # calls read at a time, at first and at most: a body may have a megabyte
COLUMNS = (
    *("id", "started_at", "status", "agent", "name", "qualified_name", "origin", "mcp_server", "arguments", "ran_with"),
    *("output", "error", "duration_ms", "output_bytes", "decision", "approver", "replay_of", "conversation_id"),
    *("called_seq", "run_id", "call_id", "url", "imported_at"),
)


class ExportReader:
    """Reads page after page: more calls at a time while their events are short, fewer if `within` cuts a page."""

    def __init__(self, filters: CallFilters) -> None:
        self.size = BATCH  # calls of the next page
        self._filters = filters

    def __call__(self, position: CallPosition | None) -> tuple[list[dict[str, Any]], CallPosition | None]:
        """Return the calls after a position, and the position to continue from; None at the end."""
        page = query.newest(self._filters, before=position, limit=self.size)
        part = within(page)
        self.size = max(BATCH, self.size // 2) if len(part.items) < len(page.items) else min(MAX_BATCH, self.size * 2)
        return [item(row) for row in rows(part.items, whole=True)], part.after


EXPORT = ListExport("tool-calls", "export_calls", COLUMNS, ExportReader)
