"""Turn an entry of a Redis stream into an event. Used by the recorder, and when a quarantined message is retried.

A payload is parsed as the publish endpoint does (§3.1): leniently, keeping the original text as the body. It belongs to
the conversation it names, else to that of its `stream:` topic.
"""

from conversations.core.errors import Invalid
from conversations.core.principals import REDIS
from conversations.events import log
from conversations.events.log.records import NewEvent
from conversations.events.payload import (
    MAX_KEY,
    ParsedPayload,
    check_named,
    check_topic,
    clean_text,
    conversation_of,
    parse,
)
from conversations.transport import entry_ids


def event_from_entry(
    topic: str, payload: bytes, bus_id: str | None, *, entry_id: str, found_at: int, conversation: str = ""
) -> NewEvent:
    """Return the event; `conversation` is a person's choice if the message names none. An entry older than the first
    contact with the stream (`found_at`, µs UTC) is history. Raises what the endpoint would."""
    check_topic(topic)
    body, parsed = text_of(payload), parse(payload)
    if conversation:
        _file(parsed, topic, conversation)
    event = log.from_bus(topic, bus_id, body, parsed, REDIS)
    check_named(topic, event.conversation)
    return event if entry_ids.at(entry_id) >= found_at else event._replace(starts_no_run=True)


def text_of(raw: bytes) -> str:
    """Decode UTF-8. Raises Invalid."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"must be UTF-8: byte {error.start:,} is invalid") from None


def conversation_id_of(topic: str, parsed: ParsedPayload) -> str | None:
    """Return the conversation a message itself names; None without a valid one."""
    try:
        return conversation_of(topic, parsed)
    except Invalid:
        return None


def _file(parsed: ParsedPayload, topic: str, conversation: str) -> None:
    if own := conversation_id_of(topic, parsed):
        raise Invalid(f"must be empty: the message names its own conversation, {own}", field="conversation")
    if len(conversation) > MAX_KEY or clean_text(conversation) != conversation:
        raise Invalid(f"must be at most {MAX_KEY} characters", field="conversation")
    parsed.conversation_id = conversation
