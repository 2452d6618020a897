"""What says that words were taken out of the record (§5)."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from conversations.events.event_type import PEOPLE, Lane, Row, Search, event_type
from conversations.events.types.base import BaseEvent

REDACTED = "event.redacted"
ID_ERASED = "conversation.id_erased"
LEFT = "[redacted]"  # stands where a field or a text was, in what is left of an event
FIELD_MARK = "redaction-field:"  # begins what erased an event that lost one field, and says the rest


class RedactedEvent(msgspec.Struct):
    """One event that was redacted. `digest`: `hash_chain.tombstone_digest` of what stands there since."""

    seq: int
    digest: str


@event_type(
    Row(template="event_redacted"), authority=PEOPLE, author="principal", level="chat", lane=Lane("Redacted", "reason"),
    search=Search(is_indexed=False), traits={"no_activity", "outlined"},
)  # fmt: skip
class EventRedacted(BaseEvent):
    """The words of earlier events of the conversation were taken out, each named in `events` with its number and the
    digest of what stands there since. Only they may be without a salt. `by` did it."""

    event: Literal["event.redacted"] = "event.redacted"
    events: list[dict[str, int | str]]
    reason: str = ""
    by: str = ""


@event_type(
    Row(template="conversation_id_erased"), authority=PEOPLE, author="principal", level="chat",
    lane=Lane("Id erased", "reason"), search=Search(is_indexed=False), traits={"no_activity", "outlined"},
)  # fmt: skip
class IdErased(BaseEvent):
    """The conversation's id was erased; since then it is `new_id`. Only such a conversation may be without the salt of
    its id. `calls`: the ids of earlier calls of external agents, which were derived from the old id, by event number.
    `by` did it."""

    event: Literal["conversation.id_erased"] = "conversation.id_erased"
    new_id: str
    calls: dict[str, str] = {}
    reason: str = ""
    by: str = ""


class _Named(msgspec.Struct):
    events: list[RedactedEvent]


_decoder = msgspec.json.Decoder(_Named)


def redactions_of(body: str) -> Sequence[RedactedEvent]:
    """Return what a stored `event.redacted` names; nothing where it cannot be read."""
    try:
        return _decoder.decode(body).events
    except (msgspec.DecodeError, UnicodeError):
        return ()


class _Renamed(msgspec.Struct):
    new_id: str
    calls: dict[int, str] = {}


_renamed = msgspec.json.Decoder(_Renamed)


def new_id_of(body: str) -> str:
    """Return the new id that a stored `conversation.id_erased` names; empty where it cannot be read."""
    return _renaming_of(body).new_id


def kept_calls_of(body: str) -> dict[int, str]:
    """Return the ids of calls, by seq, that a stored `conversation.id_erased` keeps."""
    return _renaming_of(body).calls


def _renaming_of(body: str) -> _Renamed:
    try:
        return _renamed.decode(body)
    except (msgspec.DecodeError, UnicodeError):
        return _Renamed("")
