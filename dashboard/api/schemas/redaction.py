"""The schemas of redactions, legal holds and retention rules, in addition to `core`."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, RowNumber, Shape

Reason = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(max_length=200)]


class ToPreviewRedaction(BaseModel):
    """One thing to redact: events of a conversation, or its id (`erase_id`); or a tool call, or one field of it
    (`args.phone`); or everything that a person said, received or is named in (`person`, a user name), and everything
    that contains one of these `words`; or `entries` of the audit log."""

    conversation_id: Name = ""
    events: Annotated[list[RowNumber], Field(max_length=500)] = []
    call_id: Annotated[str, Field(max_length=64)] = ""
    field: Name = ""
    person: Annotated[str, Field(max_length=150)] = ""
    words: Annotated[list[Name], Field(max_length=20)] = []
    entries: Annotated[list[RowNumber], Field(max_length=2000)] = []
    erase_id: bool = False


class ToRedact(ToPreviewRedaction):
    """The same, with the reason, which is kept in the record."""

    reason: Reason


class RedactionPlace(Shape):
    """What is redacted in one conversation: events by type, and other places that repeat them. `blocked`: why nothing
    can be redacted now."""

    conversation_id: str
    events: list[int]
    kinds: dict[str, int]
    elsewhere: dict[str, int]
    is_fork: bool
    blocked: str


class RedactionPreview(Shape):
    """What would be redacted, and where. `ids`: conversations whose id contains the person's name or one of the words;
    each of these ids is redacted on its own."""

    items: list[RedactionPlace]
    audit_entries: list[int]
    ids: list[str]


class Redacted(Shape):
    """What was redacted in one conversation."""

    conversation_id: str
    events: list[int]


class RedactionRefused(Shape):
    """Where nothing was redacted, and why."""

    conversation_id: str
    message: str


class RedactionOutcome(Shape):
    """The result; or the number of the request, which waits for a second admin."""

    redacted: list[Redacted]
    refused: list[RedactionRefused]
    audit_entries: int
    request: int | None


class RedactionRequest(Shape):
    """A redaction or a retention rule that waits for a second admin."""

    id: int
    what: str
    reason: str
    requested_by: str
    requested_at: datetime


class RedactionRequests(Paged[RedactionRequest]):
    """All waiting requests, oldest first."""


class ToDecideRedaction(BaseModel):
    """Whether to redact. The requester may decline the request, but not confirm it."""

    confirm: bool
    reason: Reason = ""


class ToHold(BaseModel):
    """What to hold: the id of a conversation, or `*` for all. A hold of class `regulated` can never be released."""

    conversation_id: Name
    reason: Reason
    regulated: bool = False


class ToRelease(BaseModel):
    """Why the hold is released."""

    reason: Reason


class LegalHold(Shape):
    """A legal hold. `conversation_id` is `*` for every conversation."""

    id: int
    conversation_id: str
    regulated: bool
    reason: str
    placed_by: str
    placed_at: datetime


class LegalHolds(Paged[LegalHold]):
    """The holds in force, oldest first."""


class HoldId(Shape):
    """The id of the hold."""

    id: int


class ToRetain(BaseModel):
    """How many days events are kept; empty: of any type, any team, any conversation."""

    days: Annotated[int, Field(ge=1, le=36_500)]
    kind: Annotated[str, Field(max_length=100)] = ""
    team: Name = ""
    conversation_id: Name = ""
    reason: Reason


class ToRemoveRetention(BaseModel):
    """Why the rule is removed."""

    reason: Reason = ""


class RetentionRule(Shape):
    """A retention rule, and the last result of the daily job."""

    id: int
    days: int
    kind: str
    team: str
    conversation_id: str
    reason: str
    made_by: str
    made_at: datetime
    ran_at: datetime | None
    redacted: int
    held_back: int


class RetentionRequested(Shape):
    """The number of the request, which waits for a second admin like that of a redaction."""

    request: int


class RetentionRules(Paged[RetentionRule]):
    """All rules, oldest first."""


class RetentionId(Shape):
    """The id of the rule."""

    id: int


class RetentionPreview(Shape):
    """The events that a rule would redact now, by type, and how many of these are on hold."""

    kinds: dict[str, int]
    events: int
    held_back: int
