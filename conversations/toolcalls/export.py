"""All calls that match, newest first, as a file (`conversations.exports`)."""

from collections.abc import AsyncIterator, Iterable
from functools import partial

from conversations import exports
from conversations.exports import Form
from conversations.principals import Principal
from conversations.toolcalls import listing
from conversations.toolcalls.conditions import Place
from conversations.toolcalls.filters import Filters
from conversations.toolcalls.rows import Row, item, rows, within

BATCH = 20  # calls read at a time: a body may have a megabyte
COLUMNS = (
    *("id", "started_at", "status", "agent", "name", "qualified_name", "origin", "mcp_server", "arguments", "output"),
    *("error", "duration_ms", "output_bytes", "approver", "replay_of", "conversation_id", "called_seq", "run_id"),
    *("call_id", "url"),
)


def export(filters: Filters, form: Form, by: Principal) -> AsyncIterator[bytes]:
    """Answer the file in pieces, as long as `by` may export."""
    return exports.stream(by, head(form), partial(page, filters, form))


def head(form: Form) -> bytes:
    """Answer what stands before the calls."""
    return exports.head(form, COLUMNS)


def page(filters: Filters, form: Form, place: Place | None) -> tuple[bytes, Place | None]:
    """Answer the calls behind a place, and where to go on; None at the end."""
    found = within(listing.newest(filters, before=place, limit=BATCH))
    return lines(rows(found.calls, whole=True), form), found.after


def lines(some: Iterable[Row], form: Form) -> bytes:
    """Write calls, one a line."""
    return exports.lines([item(row) for row in some], form, COLUMNS)
