"""The part of `GET /api/v1/openapi.json` about the audit log."""

from conversations.auditlog import filters
from conversations.toolcalls.filters import LAST
from dashboard.api import audit_shapes
from dashboard.api.operations import BEARER, SESSION, TEXT, Json, does, up_to


def paths() -> Json:
    """Answer the operations by their paths."""
    many = {name: {"type": "array", "items": TEXT, "maxItems": filters.MOST} for name in filters.MANY}
    texts = dict.fromkeys(("target", "conversation", "q", "before"), TEXT)
    choices = {"outcome": {"enum": list(filters.OUTCOMES)}, "last": {"enum": list(LAST)}}
    moment: Json = {"type": "string", "format": "date-time"}
    return {
        "/api/v1/audit": {
            "get": does(
                "List the audit log, newest first, by the filters of the page: all must hold, of several values one.",
                {200: audit_shapes.AuditEntries},
                query={**many, **texts, **choices, "from": moment, "to": moment, "limit": up_to(200, 50)},
                security=[BEARER, SESSION],
            )
        },
    }
