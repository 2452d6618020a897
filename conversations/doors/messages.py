"""Read one published message: what came is checked, its body kept as the text it is. Called by the publish door."""

import json

import msgspec

from conversations import envelopes, log, rights
from conversations.envelopes import Said
from conversations.errors import Invalid, NotAllowed, SwitchboardError
from conversations.ids import new_id
from conversations.log.events import NewEvent
from conversations.sessions import Visitor

MAX_ID = 200  # characters of a bus id
NOTHING = msgspec.Raw(b"")
EXPECTED = 'expected {"topic", "payload", "id"?}'


class Message(msgspec.Struct):
    """One message as it is published: a topic, a payload left as it came, and the bus message's id."""

    topic: str
    payload: msgspec.Raw
    id: str | None = None


_decoder = msgspec.json.Decoder(Message)


def read(line: bytes | msgspec.Raw, visitor: Visitor) -> NewEvent:
    """Read one message from its JSON. Raises Invalid, TooLarge or NotAllowed, saying where."""
    try:
        message = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{EXPECTED} as JSON: {error}") from None
    return event_of(message.topic, message.payload, message.id, visitor)


def event_of(topic: str, payload: msgspec.Raw, bus_id: str | None, visitor: Visitor) -> NewEvent:
    """Make the event that a message is. A token with an id keeps a post of it, so that it is found again inside a
    segment (design 3.1). Raises as `read`."""
    envelopes.check_topic(topic)
    if bus_id is not None and (not 1 <= len(bus_id) <= MAX_ID or envelopes.fit(bus_id) != bus_id):
        raise Invalid(f"expected 1 to {MAX_ID} characters", field="id")
    raw = bytes(payload)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"expected UTF-8: {error}", field="payload") from None
    said = envelopes.read(raw)
    if visitor.agent:
        said, text = _as_own(said, text, visitor)
    fallback = said.id if said.kind != "token" else None
    event = log.of_payload(topic, bus_id or (fallback or new_id())[:MAX_ID], text, said, visitor.principal)
    envelopes.check_named(topic, event.conversation)
    if bus_id and event.kind == "token" and event.conversation is not None and not event.topic:
        event = event._replace(topic=topic)
    return event


def error_of(error: SwitchboardError) -> bytes:
    """Answer what an error is in a list of answers."""
    return json.dumps({"error": error.as_dict()}).encode()


def answer_of(event: NewEvent, seq: int) -> bytes:
    """Answer `{id, conversation_id, seq}`; the last two are null for a topic that names no conversation."""
    is_filed = event.conversation is not None
    return msgspec.json.encode(
        {"id": event.bus_id, "conversation_id": event.conversation, "seq": seq if is_filed else None}
    )


def _as_own(said: Said, text: str, visitor: Visitor) -> tuple[Said, str]:
    """Let an agent's token speak as its own agent only (design 3.6): whoever is named is it, and nobody named is it."""
    named = [name for name in (said.sender, said.agent) if name]
    for name in named:
        if not rights.is_own(visitor.agent, name):
            raise NotAllowed(
                f"{visitor.principal} publishes as {visitor.agent} only, not as {name[:80]}",
                field="payload.sender" if name == said.sender else "payload.agent",
            )
    if named:
        return said, text
    is_envelope = said.event is None and said.type is not None
    name, value = ("sender", f"agent:{visitor.agent}") if is_envelope else ("agent", visitor.agent)
    body = text.rstrip()[:-1].rstrip()
    comma = "" if body.endswith("{") else ","
    written = f"{body}{comma}{json.dumps(name)}:{json.dumps(value)}}}"  # at the end: of two alike the last one counts
    envelopes.check_size(len(written))
    return msgspec.structs.replace(said, **{name: value}), written
