"""`NewEvent` goes into the log, `Stored` comes out of it; the functions make a `NewEvent` of what arrived or of what we
write."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from conversations.core.ids import copy_id, new_id
from conversations.core.principals import Principal
from conversations.events import registry
from conversations.events.payload import ParsedPayload, clean_text, conversation_of, is_posted, parse

LEFT = "left"  # how a call is shown in a fork whose border comes before its end; no status of a row


class NewEvent(NamedTuple):
    """An event to store; its fields match its body. Created by `from_bus`, `from_people` or `from_internal`, of spans
    by `asgi.telemetry`, of a running agent's tokens by `write_job.OpenTokens`."""

    conversation: str | None  # the key; None for a topic that names no conversation (a post only)
    kind: str
    body: str  # JSON, the text that came
    principal: str
    payload: ParsedPayload
    event_id: str | None = None
    run: str | None = None
    turn: int | None = None
    topic: str = ""  # the bus topic, when a post is kept of it
    bus_id: str | None = None
    attempt: int | None = None  # of the run, from the worker that holds it: the fence (law F)
    starts_no_run: bool = False  # a report, an import, a playback, older than first contact, a copy (§3.4)
    fence_run: str | None = None  # the run behind whose fence it is written, where the event is not the run's own
    merge_group: int = 0  # tokens with the same number are joined into one event, each findable by its bus id
    credential: str = ""  # of a token's principal, which `token_check` compares when it is stored


class Stored(NamedTuple):
    """One event of the history. `at` is the commit time in µs UTC."""

    conversation: str
    seq: int
    kind: str
    at: int
    principal: str
    run: str | None
    turn: int | None
    event_id: str | None
    body: str
    is_new: bool = True  # False: this id was stored before, and this is where
    clashes: bool = False  # True: it was stored before with another payload, and this one was not stored


class Cut(NamedTuple):
    """What a page leaves out of an open turn: the number of its events, and the first of them."""

    events: int
    first_seq: int


class CallEvents(NamedTuple):
    """A tool call as described by its events: the data for its block. Either event may contain both parts. Its status
    may be LEFT."""

    id: str
    status: str  # §3.6: called, waiting, approved, executing, done, failed, timeout, rejected, blocked, unknown
    nth: int
    started_at: int  # µs UTC
    duration_ms: float | None
    called: Stored
    finished: Stored | None
    approval_request: Stored | None = None  # its approval.requested
    approval_decision: Stored | None = None  # the one decision about it

    @property
    def events(self) -> tuple[Stored, ...]:
        """The events from which it is rendered, in order, each once."""
        parts = (self.called, self.finished, self.approval_request, self.approval_decision)
        by_seq = {event.seq: event for event in parts if event is not None}
        return tuple(by_seq[seq] for seq in sorted(by_seq))

    @property
    def seqs(self) -> tuple[int, ...]:
        """The numbers of the events from which it is rendered."""
        return tuple(event.seq for event in self.events)


def from_bus(topic: str, bus_id: str | None, body: str, payload: ParsedPayload, principal: Principal) -> NewEvent:
    """Create an event from a bus message. Its id is the payload's, or else the bus message's; a token's is always the
    bus message's.

    Without a bus id, a post gets the payload's id or a new one, and a token gets none. Raises `Invalid` if the
    conversation's id is invalid.
    """
    kind = payload.kind
    if registry.declared(kind) is None:
        kind = clean_text(kind)
    bus_id = clean_text(bus_id) if bus_id else None
    own_id = payload.id
    event_id = bus_id if kind == "token" else (own_id or bus_id)
    is_internal, posted = principal.is_ours, is_posted(topic)
    has_two_ids = bus_id and own_id and bus_id != own_id and kind != "token"
    return NewEvent(  # by place: a third faster than by name
        conversation_of(topic, payload),
        kind,
        body,
        principal.text,
        payload,
        event_id[:200] if event_id else None,
        payload.run_id[:64] if is_internal and payload.run_id else None,
        payload.turn if is_internal else None,
        topic if posted or has_two_ids else "",
        bus_id or ((own_id or new_id())[:200] if posted else None),
        None,
        False,
        None,
        0,
        principal.credential,
    )


def from_internal(conversation: str, payload: dict[str, object], principal: Principal, *, topic: str = "") -> NewEvent:
    """Create an event of our own: `payload` is encoded compactly, with its conversation set. Raises ValueError if it
    does not fit the schema of its type."""
    whole = {**payload, "conversation_id": conversation}
    body = msgspec.json.encode(whole)
    parsed = parse(body)
    registry.check(parsed.kind, whole)
    return from_bus(topic or f"stream:{conversation}", parsed.id, body.decode(), parsed, principal)


def from_people(topics: Iterable[str], envelope: dict[str, Any], principal: Principal) -> list[NewEvent]:
    """Create one event for each topic to which an envelope is sent; together they are one message. Raises ValueError if
    it does not fit the schema of its type."""
    body = json.dumps(envelope, ensure_ascii=False)
    parsed = parse(body.encode())
    registry.check(parsed.kind, envelope)
    return [from_bus(topic, copy_id(envelope["id"], n), body, parsed, principal) for n, topic in enumerate(topics)]


def spoken_text(body: str) -> str:
    """Return the text of a stored body, for the agent or person that is to answer it."""
    return parse(body.encode("utf-8", "replace")).words
