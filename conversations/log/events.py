"""What goes into the log and what comes out of it."""

from functools import lru_cache
from typing import NamedTuple

import msgspec

from conversations import principals
from conversations.envelopes import Said, conversation_of, fit, is_posted, read
from conversations.ids import new_id
from conversations.principals import Principal

LEFT = "left"  # how a call is shown in a fork whose border comes before its end; no status of a row

_text_of = lru_cache(1024)(str)  # of a principal


class NewEvent(NamedTuple):
    """One event to store. Made by `of_payload` or `of_ours`, so that its facts agree with its body."""

    conversation: str | None  # the key; None for a topic that names no conversation (a post only)
    kind: str
    body: str  # JSON, the text that came
    principal: str
    said: Said
    event_id: str | None = None
    run: str | None = None
    turn: int | None = None
    topic: str = ""  # the bus topic, when a post is kept of it
    bus_id: str | None = None
    attempt: int | None = None  # of the run, from the worker that holds it: the fence (law F)
    is_live: bool = True  # False: history (import, play, first contact); it never starts a run (design 3.4)
    segment: int = 0  # tokens with the same number are joined into one event, each findable by its bus id


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


class Call(NamedTuple):
    """A tool call as its events tell it: what a block is drawn from. Either may be both. Its status may be LEFT."""

    id: str
    status: str  # design 3.6: called, waiting, approved, executing, done, failed, timeout, rejected, blocked, unknown
    nth: int
    started_at: int  # µs UTC
    duration_ms: float | None
    called: Stored
    finished: Stored | None
    asked: Stored | None = None  # its approval.requested
    decided: Stored | None = None  # the one decision about it

    @property
    def seqs(self) -> tuple[int, ...]:
        """The events it is drawn from."""
        return tuple(sorted({e.seq for e in (self.called, self.finished, self.asked, self.decided) if e is not None}))


def of_payload(topic: str, bus_id: str | None, body: str, said: Said, principal: Principal) -> NewEvent:
    """Make an event of a bus message. Its id is the payload's, else the bus message's; a token's is the bus message's.

    Without a bus id a post takes the payload's id or a new one, and a token has none. Raises `Invalid` when the
    conversation's id is unfit.
    """
    kind = fit(said.kind)
    bus_id = fit(bus_id) if bus_id else None
    own_id = said.id
    event_id = bus_id if kind == "token" else (own_id or bus_id)
    ours, posted = principal.is_ours, is_posted(topic)
    has_two_ids = bus_id and own_id and bus_id != own_id and kind != "token"
    return NewEvent(  # by place: a third faster than by name
        conversation_of(topic, said),
        kind,
        body,
        _text_of(principal),
        said,
        event_id[:200] if event_id else None,
        said.run_id[:64] if ours and said.run_id else None,
        said.turn if ours else None,
        topic if posted or has_two_ids else "",
        bus_id or ((own_id or new_id())[:200] if posted else None),
    )


def of_ours(conversation: str, payload: dict[str, object], principal: Principal, *, topic: str = "") -> NewEvent:
    """Make an event of our own writing: `payload` is encoded compactly, its conversation is set."""
    body = msgspec.json.encode({**payload, "conversation_id": conversation})
    said = read(body)
    return of_payload(topic or f"stream:{conversation}", said.id, body.decode(), said, principal)


def is_ours(stored: Stored) -> bool:
    """Tell whether this event may change state (law I)."""
    return principals.is_ours(stored.principal)


def words(body: str) -> str:
    """Answer what a stored body says, for whoever has to answer it."""
    return read(body.encode("utf-8", "replace")).words
