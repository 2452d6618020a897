"""Make a `NewEvent` of a published message: validate it, and keep its body as the text that arrived. Called by the
endpoints for publishing and telemetry."""

import json

import msgspec

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.core.errors import Invalid, NotAllowed, SwitchboardError, TooLarge
from conversations.core.ids import new_id
from conversations.events import log
from conversations.events.log.records import NewEvent
from conversations.events.payload import (
    MAX_BYTES,
    ParsedPayload,
    check_named,
    check_size,
    check_topic,
    clean_text,
    parse,
)
from switchboard.http_bus import MAX_ID

OVERHEAD = 4096  # bytes around a payload, which has at most `MAX_BYTES` (`MAX_PAYLOAD` of `switchboard/bus.py`)
NOTHING = msgspec.Raw(b"")
EXPECTED = 'must be {"topic", "payload", "id"?}'


class PublishedMessage(msgspec.Struct):
    """A message to publish: a topic, the payload as it arrived, and the bus message's id."""

    topic: str
    payload: msgspec.Raw
    id: str | None = None


class HandoffFields(msgspec.Struct):
    """The fields that are read of a handoff: the agent that hands the conversation over."""

    from_agent: str | None = None


_decoder = msgspec.json.Decoder(PublishedMessage)
_handoff = msgspec.json.Decoder(HandoffFields)


def parse_published(line: bytes | msgspec.Raw | PublishedMessage, caller: Caller) -> NewEvent:
    """Parse a message from its JSON, which may already be decoded. Raises Invalid, TooLarge or NotAllowed with the
    location of the error."""
    if isinstance(line, PublishedMessage):
        return event_of(line.topic, line.payload, line.id, caller)
    if len(line) > MAX_BYTES + OVERHEAD:
        raise TooLarge(f"must be at most {MAX_BYTES:,} bytes", field="payload")
    try:
        message = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"a message {EXPECTED} as JSON: {error}") from None
    return event_of(message.topic, message.payload, message.id, caller)


def event_of(topic: str, payload: msgspec.Raw, bus_id: str | None, caller: Caller) -> NewEvent:
    """Create the event of a message. A token with an id keeps a post, so that it can be found when merged (§3.1).
    Raises like `parse_published`."""
    check_topic(topic)
    if bus_id is not None and (not 1 <= len(bus_id) <= MAX_ID or clean_text(bus_id) != bus_id):
        raise Invalid(f"must be 1 to {MAX_ID} characters", field="id")
    raw = bytes(payload)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"must be UTF-8: {error}", field="payload") from None
    parsed = parse(raw)
    if caller.agent:
        parsed, text = _as_own(parsed, text, caller)
    fallback = parsed.id if parsed.kind != "token" else None
    event = log.from_bus(topic, bus_id or (fallback or new_id())[:MAX_ID], text, parsed, caller.principal)
    check_named(topic, event.conversation)
    if bus_id and event.kind == "token" and event.conversation is not None and not event.topic:
        event = event._replace(topic=topic)
    return event


def error_of(error: SwitchboardError) -> msgspec.Raw:
    """Return the representation of an error in a list of results."""
    return msgspec.Raw(json.dumps({"error": error.as_dict()}).encode())


def answer_of(event: NewEvent, seq: int) -> dict[str, str | int | None]:
    """Return `{id, conversation_id, seq}`; the last two are null for a topic that belongs to no conversation."""
    key = event.conversation
    return {"id": event.bus_id, "conversation_id": key, "seq": None if key is None else seq}


def _as_own(parsed: ParsedPayload, text: str, caller: Caller) -> tuple[ParsedPayload, str]:
    """Restrict an agent's token to its own agent (§3.6): a named sender must be that agent or one inside it, and a
    missing one is set to it. A person's input, as reported by an agent, has no verified author: the record shows which
    token reported it."""
    named = [name for name in (parsed.sender, parsed.agent) if name]
    for name in named:
        if not permissions.may_speak_as(caller.agent, name):
            raise NotAllowed(
                f"{caller.principal} may publish only as {caller.agent}, not as {name[:80]}",
                field="payload.sender" if name == parsed.sender else "payload.agent",
            )
    if parsed.kind == "agent.handoff":
        _require_own_handoff(text, caller)
    if named or parsed.event == "user_message":
        return parsed, text
    is_envelope = parsed.event is None and parsed.type is not None
    name, value = ("sender", f"agent:{caller.agent}") if is_envelope else ("agent", caller.agent)
    body = text.rstrip()[:-1].rstrip()
    comma = "" if body.endswith("{") else ","
    written = f"{body}{comma}{json.dumps(name)}:{json.dumps(value)}}}"  # at the end: of two alike the last one counts
    check_size(len(written.encode()))
    return msgspec.structs.replace(parsed, **{name: value}), written


def _require_own_handoff(text: str, caller: Caller) -> None:
    """Raise NotAllowed for a handoff from another agent, Invalid if `from_agent` is no text: readers treat it as the
    sender."""
    try:
        giver = _handoff.decode(text).from_agent
    except msgspec.ValidationError:
        raise Invalid("must be a string", field="payload.from_agent") from None
    if giver and not permissions.may_speak_as(caller.agent, giver):
        why = f"{caller.principal} may hand over only from {caller.agent}, not from {giver[:80]}"
        raise NotAllowed(why, field="payload.from_agent")
