"""All entries that match, newest first, as a file (`conversations.exports`)."""

from collections.abc import AsyncIterator
from functools import partial

from conversations import exports
from conversations.auditlog import listing
from conversations.auditlog.filters import Filters
from conversations.auditlog.rows import item
from conversations.exports import Form
from conversations.principals import Principal

BATCH = 500  # entries read at a time
COLUMNS = (
    *("seq", "at", "principal", "acting_as", "verb", "target", "outcome", "reason", "correlation", "before", "after"),
    *("prev_hash", "hash", "url"),
)


def export(filters: Filters, form: Form, by: Principal) -> AsyncIterator[bytes]:
    """Answer the file in pieces, as long as `by` may export."""
    return exports.stream(by, exports.head(form, COLUMNS), partial(page, filters, form))


def page(filters: Filters, form: Form, before: int | None) -> tuple[bytes, int | None]:
    """Answer the entries below one, and where to go on; None at the end."""
    found = listing.newest(filters, before=before, limit=BATCH)
    return exports.lines([item(entry) for entry in found.entries], form, COLUMNS), found.after
