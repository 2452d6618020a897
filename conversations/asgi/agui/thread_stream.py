"""`GET /api/v1/agui/conversations/{id}`: stream the runs of our agents in a conversation, past and future ones, as
AG-UI events. `?after=` (or Last-Event-ID) continues after an event, with nothing repeated or left out; `?run=` streams
one run, and ends with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ag_ui.core import RunErrorEvent
from django.db.models import F

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.asgi.agui.run_encoder import as_sse
from conversations.asgi.agui.thread_encoder import ThreadCursor, ThreadEncoder, cursor_of
from conversations.asgi.responses.endpoint import STILL_HERE, STREAM_HEADERS, Wire, following, stopping
from conversations.asgi.responses.shared import ResponsesContext, in_thread_if_large, trouble
from conversations.core.errors import Invalid, NotFound, SwitchboardError
from conversations.events.log.records import Stored
from conversations.models import Conversation, Run
from conversations.runs.responses.create import Received

FIELDS = ("after", "run")
CHUNK = 100  # runs read at a time
KIND = "agent"  # of the runs that are streamed: neither replays, nor what stands for an external agent


class _Place(NamedTuple):
    """The position to read from, for the events after `after`. `only`: the run to stream; `is_past`: all of it lies in
    the past."""

    key: str
    seq: int
    after: ThreadCursor
    only: str
    is_past: bool


class ThreadStream:
    """The route; `scope["named"]` is the conversation."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Serve one request. Raises errors that are answered with a status."""
        caller = await self._context.admit(scope, ("GET",), "view")
        fields = route.query(scope)
        if unknown := sorted(fields.keys() - set(FIELDS)):
            raise Invalid(f"must be {' or '.join(FIELDS)}", field=unknown[0][:40])
        text = fields.get("after") or route.header(scope, b"last-event-id").decode("latin-1") or "0"
        with self._context.reading(caller) as reader:
            place = await self._context.do(_place, caller, scope["named"], cursor_of(text), fields.get("run", ""))
            received = Received("", place.key, place.only, place.seq, 0, {}, False)
            with following(self._context, reader, received, scope, receive, send, float("inf")) as wire:
                await self._stream(wire, place)

    async def _stream(self, wire: Wire, place: _Place) -> None:
        await wire.start(STREAM_HEADERS)
        try:
            if not place.is_past:
                await self._send_events(wire, ThreadEncoder(place.key, place.after, place.only))
        except OSError:  # the client left
            raise
        except Exception as error:
            await wire.pieces([_failed(trouble(wire.begun, error))])
        await wire.end(b"")

    async def _send_events(self, wire: Wire, encoder: ThreadEncoder) -> None:
        async for events in self._context.events(wire.begun):
            await wire.wait_until_allowed()
            if wire.reader.dismissal is not None:
                await wire.pieces([_failed(wire.reader.dismissal)])
                return
            pieces = await in_thread_if_large(events, _encode, encoder, events)
            pieces += [_failed(stopping())] if wire.is_stopping and not encoder.is_over else []
            if wire.is_over:
                return
            await (wire.pieces(pieces) if pieces else wire.send_keepalive(STILL_HERE))
            if encoder.is_over or wire.is_stopping:
                return


def _place(caller: Caller, key: str, after: ThreadCursor, only: str) -> _Place:
    """Return the position to start reading at: before the runs that were under way at the cursor, and before those that
    overlap them, because what of them was streamed must be known."""
    permissions.require(caller.principal, "view")
    conversation = Conversation.objects.filter(key=key, is_staged=False).first() if "\0" not in key else None
    if conversation is None:
        raise NotFound(f"there is no conversation {key[:80]!r}")
    runs = Run.objects.filter(conversation=conversation, kind=KIND, parent_call=None)
    if only:
        run = runs.filter(id=only[:64]).first() if "\0" not in only else None
        if run is None:
            raise NotFound(f"there is no run {only[:80]!r} in this conversation")
        is_past = run.ended_seq is not None and ThreadCursor(run.ended_seq) <= after
        return _Place(key, _before(run), after, only, is_past)
    seq, known = after.seq, runs.filter(queued_seq__lte=after.seq)
    for run in known.order_by(F("ended_seq").desc(nulls_first=True)).iterator(CHUNK):
        if run.ended_seq is not None and run.ended_seq < seq:
            break
        seq = min(seq, _before(run))
    return _Place(key, seq, after, "", False)


def _before(run: Run) -> int:
    return max(0, min(run.input_seq, run.queued_seq) - 1)


def _encode(encoder: ThreadEncoder, events: Sequence[Stored]) -> list[bytes]:
    pieces: list[bytes] = []
    for event in events:
        if not encoder.is_over:
            pieces += encoder.encode(event)
    return pieces


def _failed(error: SwitchboardError) -> bytes:
    return as_sse(RunErrorEvent(message=error.message, code=error.code))
