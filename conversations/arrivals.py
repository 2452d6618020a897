"""What a Redis stream carries → an event of the record. Read by the recorder, and again by who re-drives it.

A payload is read as the HTTP door reads it (design 3.1): leniently, the body kept as the text that came; filed by the
conversation it names, else by its `stream:` topic.
"""

from conversations import entry_ids, envelopes, log
from conversations.envelopes import Said
from conversations.errors import Invalid
from conversations.log.events import NewEvent
from conversations.principals import REDIS


def event_of(
    topic: str, payload: bytes, bus_id: str | None, *, entry_id: str, found_at: int, conversation: str = ""
) -> NewEvent:
    """Make the event; `conversation` is a person's word where the message names none. What is older than the stream's
    first contact (`found_at`, µs) is history. Raises what a door would."""
    envelopes.check_topic(topic)
    body, said = text_of(payload), envelopes.read(payload)
    if conversation:
        _file(said, topic, conversation)
    event = log.of_payload(topic, bus_id, body, said, REDIS)
    envelopes.check_named(topic, event.conversation)
    return event if entry_ids.at(entry_id) >= found_at else event._replace(is_live=False)


def text_of(raw: bytes) -> str:
    """Decode it. Raises `Invalid`."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"expected UTF-8: byte {error.start:,} is none") from None


def named_by(topic: str, said: Said) -> str | None:
    """Answer the conversation a message belongs to by itself; None where it names none that fits."""
    try:
        return envelopes.conversation_of(topic, said)
    except Invalid:
        return None


def _file(said: Said, topic: str, conversation: str) -> None:
    if own := named_by(topic, said):
        raise Invalid(f"it names its own conversation, {own}: leave this empty", field="conversation")
    if len(conversation) > envelopes.MAX_KEY or envelopes.fit(conversation) != conversation:
        raise Invalid(f"expected at most {envelopes.MAX_KEY} characters", field="conversation")
    said.conversation_id = conversation
