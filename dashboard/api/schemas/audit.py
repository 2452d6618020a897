"""The shapes of the audit log in the API, for the OpenAPI document and the tests that hold to it."""

from typing import Any, Literal

from dashboard.api.schemas.core import Seq, Shape


class AuditEntry(Shape):
    """Who did what to what. `before` and `after` are digests of states; `hash` is over all of it and `prev_hash`."""

    seq: Seq
    at: str | None
    principal: str
    acting_as: str | None
    verb: str
    target: str
    outcome: Literal["done", "refused"]
    reason: str
    correlation: dict[str, Any]
    before: str | None
    after: str | None
    prev_hash: str
    hash: str
    url: str


class AuditEntries(Shape):
    """Entries, newest first. `looked_at`: how many were walked past before the walk ended short of the limit."""

    items: list[AuditEntry]
    cursor: str | None
    looked_at: int | None
