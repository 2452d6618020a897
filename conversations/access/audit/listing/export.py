"""Export all matching entries, newest first, as a file."""

from collections.abc import Callable
from typing import Any

from conversations.access.audit.listing import query
from conversations.access.audit.listing.filters import AuditFilters
from conversations.access.audit.listing.rows import item
from conversations.access.list_export import ListExport

BATCH = 500  # entries read at a time
COLUMNS = (
    *("seq", "at", "principal", "acting_as", "verb", "target", "outcome", "reason", "correlation", "before", "after"),
    *("prev_hash", "hash", "url"),
)


def _reader(filters: AuditFilters) -> Callable[[int | None], tuple[list[dict[str, Any]], int | None]]:
    def read(before: int | None) -> tuple[list[dict[str, Any]], int | None]:
        page = query.newest(filters, before=before, limit=BATCH)
        return [item(entry) for entry in page.items], page.after

    return read


EXPORT = ListExport("audit", "export_audit", COLUMNS, _reader)
