"""Who takes tool calls out of here: right and audit entry before the first line is sent."""

from conversations import audit
from conversations.actions.acting import acting
from conversations.rights import Who
from conversations.toolcalls.filters import Filters


def begin_export(by: Who, filters: Filters, form: str) -> None:
    """Enter that somebody exports the calls that match. Raises `NotAllowed`."""
    with acting(by, "export_calls", f"tool-calls.{form}", right="export") as principal:
        audit.enter(principal, "export_calls", f"tool-calls.{form}", correlation={"query": filters.query})
