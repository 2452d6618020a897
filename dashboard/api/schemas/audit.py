"""The schemas of the audit log, for the OpenAPI document and the tests that check it."""

from typing import Any, Literal

from dashboard.api.schemas.core import Paged, Seq, Shape


class AuditEntry(Shape):
    """Who did what to what. `before` and `after` are digests of states; `hash` covers all fields and `prev_hash`."""

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


class AuditEntries(Paged[AuditEntry]):
    """Entries, newest first. `looked_at`: how many entries were searched if the search stopped before the limit was
    reached."""

    looked_at: int | None
