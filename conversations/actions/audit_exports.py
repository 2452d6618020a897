"""Who takes the audit log out of here: right and audit entry before the first line is sent."""

from conversations import audit
from conversations.actions.acting import acting
from conversations.auditlog.filters import Filters
from conversations.rights import Who


def begin_export(by: Who, filters: Filters, form: str) -> None:
    """Enter that somebody exports the entries that match, this one included. Raises `NotAllowed`."""
    with acting(by, "export_audit", f"audit.{form}", right="export") as principal:
        audit.enter(principal, "export_audit", f"audit.{form}", correlation={"query": filters.query})
