"""`POST /v1/traces` and `/v1/logs`: data of OpenTelemetry exporters (OTLP/HTTP), in protobuf and JSON. A raw ASGI
route.

`conversations.telemetry` converts spans to events, each validated like a published message: an agent's token can report
only on its own agent, one with the role `telemetry` on any. No run starts, and no agent gets access. The response is
sent after the commit, in the encoding of the request.
"""

import asyncio
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from conversations.access.authentication import Caller
from conversations.asgi import published_message, route
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Invalid, MethodNotAllowed, SwitchboardError
from conversations.core.held_bodies import HeldBodies
from conversations.events.log.records import NewEvent
from conversations.events.payload import as_parsed
from conversations.realtime.server_runtime import ServerRuntime
from conversations.telemetry import intake, late_names, otlp_answer, otlp_json, otlp_protobuf, trace_rows
from conversations.telemetry.otlp_answer import Encoding
from conversations.telemetry.span import Decoded, Span
from conversations.telemetry.span_events import Step
from conversations.telemetry.trace_rows import TraceRow

MAX_BODY = 8 << 20  # bytes of one request as it comes
MAX_UNPACKED = 16 << 20  # bytes of one request without its compression
MAX_HELD = 64 << 20  # bytes of all requests under way
MAX_HELD_BY_ONE = MAX_HELD // 2  # bytes of one sender's, so that a slow one does not keep out the others
BLOCK = 1_000  # events of one transaction
_PIECE = 64 << 10  # bytes unpacked, and read, at a time
MAX_MEMBERS = 100  # gzip files in one body, one after the other; exporters send one
_GZIP = zlib.MAX_WBITS | 16

Decoder = Callable[[bytes], Decoded]
_encoder = msgspec.json.Encoder()
TRACES, LOGS = "/v1/traces", "/v1/logs"
_DECODERS: dict[str, dict[Encoding, Decoder]] = {
    TRACES: {"protobuf": otlp_protobuf.traces, "json": otlp_json.traces},
    LOGS: {"protobuf": otlp_protobuf.logs, "json": otlp_json.logs},
}
_REJECTED = {TRACES: "rejectedSpans", LOGS: "rejectedLogRecords"}


class DecodedRequest(NamedTuple):
    """The contents of a request: the events to store, how many spans were rejected, why the first was, by the ids of
    traces that were named late their own key and the conversation, and the rows of traces to write."""

    events: list[NewEvent]
    rejected: int
    reason: str
    late_names: dict[str, tuple[str, str]]
    traces: list[TraceRow]


class TelemetryEndpoint:
    """Both routes, bound to one server runtime."""

    def __init__(self, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        self._runtime, self._authenticator = runtime, authenticator
        self._reader = DatabaseThreads("telemetry")  # one: the memory is of one thread
        self._notes = DatabaseThreads("telemetry-notes")  # it writes: a lock it waits for holds no reading up
        self._memory = intake.Memory()
        self._epoch = ""
        self._held_bodies = HeldBodies(
            MAX_HELD, "too many requests are in progress: send again later", limit_of_one=MAX_HELD_BY_ONE
        )
        self._storing: set[asyncio.Future[None]] = set()  # requests that are read and not stored yet

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        encoding = _encoding_of(scope) or "json"
        try:
            payload = await self._handle(scope, receive)
        except SwitchboardError as error:
            await refuse(scope, send, error)
        else:
            await _answer(send, 200, payload, encoding)

    async def _handle(self, scope: route.Scope, receive: route.Receive) -> bytes:
        if scope["method"] != "POST":
            raise MethodNotAllowed(["POST"])
        caller = await self._authenticator.caller(scope, "report")
        if (encoding := _encoding_of(scope)) is None:
            raise Invalid("Content-Type must be application/x-protobuf or application/json")
        with self._held_bodies.counting(caller.principal.text) as resize:
            resize(route.announced_size(scope, MAX_BODY))  # before it is read
            body = await route.body(scope, receive, MAX_BODY)
            resize(len(body))
            if packing := route.header(scope, b"content-encoding"):
                body = await self._reader.run(_unpacked, body, packing)
                resize(len(body))  # as its events are held until they are stored
            read = await self._reader.run(self._read, scope, body, encoding, caller)
            await self._take(read, caller)
        return otlp_answer.accepted(encoding, read.rejected, read.reason, field=_REJECTED[scope["path"]])

    async def _take(self, read: DecodedRequest, caller: Caller) -> None:
        """Store the events, then move those stored elsewhere, once the events read earlier are stored there."""
        earlier, stored = list(self._storing), asyncio.get_running_loop().create_future()
        self._storing.add(stored)
        try:
            await self._store(read.events, caller.principal.text)
            if read.traces:
                await self._notes.run(trace_rows.save, read.traces)
            if read.late_names and earlier:
                await asyncio.wait(earlier)
        finally:
            self._storing.discard(stored)
            stored.set_result(None)
        for trace_id, (own_key, conversation) in read.late_names.items():
            await asyncio.to_thread(late_names.move, own_key, conversation, caller.principal)
            self._reader.submit(self._memory.note_moved, caller.principal.text, trace_id)

    async def _store(self, events: Sequence[NewEvent], sender: str) -> None:
        """Store in blocks, so that other writers get their turn. If one fails, the client sends the whole request
        again, and events already stored are dropped by their ids."""
        for at in range(0, len(events), BLOCK):
            block = events[at : at + BLOCK]
            await self._runtime.writer.store(block)
            stored = [(event.conversation or "", event.event_id or "") for event in block]
            self._reader.submit(self._memory.note_stored, sender, stored)

    def _read(self, scope: route.Scope, body: bytes, encoding: Encoding, caller: Caller) -> DecodedRequest:
        """Parse a request, in the reader's thread."""
        if (epoch := self._runtime.hub.epoch) != self._epoch:
            self._memory.forget_stored()
            self._epoch = epoch
        decoded = _DECODERS[scope["path"]][encoding](body)
        sender = caller.principal.text
        self._look_up(sender, decoded.spans)
        steps, named, late = intake.read(decoded.spans, self._memory, sender=sender, fallback_agent=caller.agent)
        events, refused_spans, why = _events_of(steps, caller)
        if refused_spans:  # a conversation where this token may report nothing names none of its traces
            filed = {event.conversation for event in events}
            late = {trace_id: keys for trace_id, keys in late.items() if keys[1] in filed}
            self._memory.forget_names(sender, named, but=filed)
        traces = trace_rows.changed(self._memory, sender, _traces_of(decoded.spans))
        return DecodedRequest(events, decoded.rejected + refused_spans, decoded.reason or why, late, traces)

    def _look_up(self, sender: str, spans: Sequence[Span]) -> None:
        """Load what the database has of these traces."""
        for trace_id, place in late_names.places_of(self._memory.unnamed(sender, spans), sender).items():
            self._memory.trace(sender, trace_id).place(*place)
        trace_rows.load(self._memory, sender, _traces_of(spans))


def _traces_of(spans: Sequence[Span]) -> list[str]:
    return list(dict.fromkeys(span.trace_id for span in spans))


def _events_of(steps: Sequence[Step], caller: Caller) -> tuple[list[NewEvent], int, str]:
    """Create the events that this token may publish; return for how many spans it may not, and why."""
    events: list[NewEvent] = []
    unfit, why = dict[int, str](), ""
    event_of = _event_of_agent if caller.agent else _event_of
    for at, step in enumerate(steps):
        try:
            events.append(event_of(step, caller))
        except SwitchboardError as error:
            unfit[at] = step.payload.span_id
            why = why or error.full_message
    fit = {step.payload.span_id for at, step in enumerate(steps) if at not in unfit} if unfit else set[str]()
    return events, len(set(unfit.values()) - fit), why


def _event_of(step: Step, caller: Caller) -> NewEvent:
    """Create the event of a step, as `log.from_bus` would: of what was written here, most is known. It describes work
    done elsewhere and starts no run."""
    body, key = _encoded(step), step.conversation
    parsed = as_parsed(step.payload, body)
    by = caller.principal
    return NewEvent(  # by place, as in `from_bus`
        key, parsed.kind, body.decode(), by.text, parsed, step.id, None, None, "", step.id, None, True, None, 0,
        by.credential,
    )  # fmt: skip


def _event_of_agent(step: Step, caller: Caller) -> NewEvent:
    """Create the event if the token is an agent's, which can report only on that agent."""
    raw = msgspec.Raw(_encoded(step))
    event = published_message.event_of(f"stream:{step.conversation}", raw, None, caller)
    return event._replace(starts_no_run=True)


def _encoded(step: Step) -> bytes:
    try:
        return _encoder.encode(step.payload)
    except (ValueError, OverflowError, RecursionError) as error:
        raise Invalid(f"a span must fit JSON: {error}") from None


def _unpacked(body: bytes, encoding: bytes) -> bytes:
    """Decompress gzip in pieces, up to 16 MiB. Raises Invalid if it is not gzip, TooLarge above the limit."""
    if encoding.lower() == b"identity":
        return body
    if encoding.lower() != b"gzip":
        raise Invalid("Content-Encoding must be gzip, or none")
    pieces: list[bytes] = []
    size, members, unzip = 0, 1, zlib.decompressobj(_GZIP)
    try:
        for at in range(0, len(body), _PIECE):
            packed = body[at : at + _PIECE]  # in slices: what is left of one is copied at each step
            while packed:
                if unzip.eof:  # another member follows
                    members, unzip = members + 1, zlib.decompressobj(_GZIP)
                    if members > MAX_MEMBERS:
                        raise Invalid(f"the body must be gzip of at most {MAX_MEMBERS} members")
                piece = unzip.decompress(packed, _PIECE)
                size += len(piece)
                pieces.append(piece)
                if size > MAX_UNPACKED:
                    raise route.too_large(MAX_UNPACKED)
                packed = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
    except zlib.error as error:
        raise Invalid(f"the body must be gzip: {error}") from None
    pieces.append(unzip.flush())
    if not unzip.eof:
        raise Invalid("the body must be gzip: it is cut off")
    return b"".join(pieces)


def _encoding_of(scope: route.Scope) -> Encoding | None:
    content_type = route.header(scope, b"content-type").partition(b";")[0].strip().lower()
    return next((name for name, value in otlp_answer.CONTENT_TYPES.items() if value == content_type), None)


async def refuse(scope: route.Scope, send: route.Send, error: SwitchboardError) -> None:
    """Send an error as a `google.rpc.Status`, in the request's encoding."""
    encoding = _encoding_of(scope) or "json"
    payload = otlp_answer.refused(encoding, error.status, error.full_message)
    await _answer(send, error.status, payload, encoding, *route.headers_of(error))


async def _answer(
    send: route.Send, status: int, payload: bytes, encoding: Encoding, *headers: tuple[bytes, bytes]
) -> None:
    await route.answer(send, status, payload, *headers, content_type=otlp_answer.CONTENT_TYPES[encoding])
