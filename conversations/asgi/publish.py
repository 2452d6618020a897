"""`POST /api/v1/publish`: parse what is published, and answer when it is committed (§3.6). A raw ASGI route.
`published_message.event_of` makes each event, and `runtime.writer` (`events/log/writer_threads.py`) has it stored."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from conversations.access.authentication import Caller
from conversations.asgi import batch_publish, published_message, route
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core import json_depth
from conversations.core.db_threads import POOL_SIZE, without_frames
from conversations.core.errors import Invalid, SwitchboardError, TooLarge
from conversations.events import payload
from conversations.events.log.records import NewEvent
from conversations.events.payload import MAX_BYTES
from conversations.realtime.server_runtime import ServerRuntime

MAX_BODY = 8 << 20  # bytes of one request
PARSE_INLINE_BYTES = 16 << 10  # a body below this is parsed in the event loop; more may hold hundreds of messages
DECODE_INLINE_BYTES = 2 << 20  # up to this, the decoder, which lets no other thread run, takes at most 5 ms
NDJSON = b"application/x-ndjson"
ParsedBatch = tuple[list[batch_publish.ParsedMessage], list[NewEvent]]


class Publish(msgspec.Struct):
    """The body: one or several messages."""

    topic: str | None = None
    payload: msgspec.Raw = published_message.NOTHING
    id: str | None = None
    messages: list[published_message.PublishedMessage] | None = None


class Pieces(msgspec.Struct):
    """A body of several messages of which at least one is invalid: each is parsed separately."""

    messages: list[msgspec.Raw]


_decoder, _pieces = msgspec.json.Decoder(Publish), msgspec.json.Decoder(Pieces)


class PublishEndpoint(route.Route):
    """The route, bound to one server runtime."""

    methods = ("POST",)
    verb = "publish"

    def __init__(self, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        self._runtime, self._authenticator = runtime, authenticator
        self._readers = ThreadPoolExecutor(POOL_SIZE["publish"], thread_name_prefix="publish")

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 201 `{id, conversation_id, seq}`, or 200 `{"items": […]}` for several."""
        caller = await self._authenticator.caller(scope, self.verb)
        body = await route.body(scope, receive, MAX_BODY)
        is_lines = route.header(scope, b"content-type").startswith(NDJSON)
        if len(body) < PARSE_INLINE_BYTES:
            parsed = _parse_body(body, caller, is_lines=is_lines)
        else:
            reading = partial(without_frames, _parse_body, body, caller, is_lines=is_lines)
            parsed = await asyncio.get_running_loop().run_in_executor(self._readers, reading)
        parsed = self._prepared_events(parsed)
        if isinstance(parsed, NewEvent):
            (stored,) = await self._runtime.writer.store([parsed])
            if stored.clashes:
                raise batch_publish.reused()
            return 201, msgspec.json.encode(published_message.answer_of(parsed, stored.seq))
        items, events = parsed
        return 200, batch_publish.answer(items, await self._runtime.writer.store(events) if events else [])

    def count(self, status: int) -> None:
        """Count a response for the metrics."""
        self._runtime.publishes[status] += 1

    def _prepared_events(self, parsed: NewEvent | ParsedBatch) -> NewEvent | ParsedBatch:
        return parsed


class ReportEndpoint(PublishEndpoint):
    """`POST /api/v1/report`: record what was said and done elsewhere, with a token that may do nothing else. Reports
    have the form of published messages, but start no run, reach no agent on a bus, and add no participant with
    access."""

    verb = "report"

    def count(self, status: int) -> None:
        """Count nothing: what is counted is what was published."""

    def _prepared_events(self, parsed: NewEvent | ParsedBatch) -> NewEvent | ParsedBatch:
        if isinstance(parsed, NewEvent):
            return _reported(parsed)
        items, events = parsed
        outcomes = [_reported_or_error(event) for event in events]
        rest = iter(outcomes)
        items = [item if isinstance(item, SwitchboardError) else next(rest) for item in items]
        return items, [outcome for outcome in outcomes if isinstance(outcome, NewEvent)]


def _reported_or_error(event: NewEvent) -> batch_publish.ParsedMessage:
    try:
        return _reported(event)
    except Invalid as error:
        return error


def _reported(event: NewEvent) -> NewEvent:
    """Return the message as history: on no topic that agents read. Raises `Invalid` if it names no conversation, or
    would rename or control one."""
    if event.conversation is None:
        raise Invalid("must be the conversation's id", field="payload.conversation_id")
    if event.kind.startswith("conversation."):
        raise Invalid("must describe what was said or done; a report cannot change state", field="payload.event")
    return event._replace(starts_no_run=True, topic="" if payload.is_posted(event.topic) else event.topic)


def _parse_body(body: bytes, caller: Caller, *, is_lines: bool) -> NewEvent | ParsedBatch:
    """Parse one or several messages. A large body is parsed in a thread, so that sockets are not delayed."""
    if is_lines:
        return batch_publish.parse_batch(batch_publish.lines_of(body), caller)
    if (
        len(body) > DECODE_INLINE_BYTES
        and json_depth.is_dense(body)
        and (pieces := batch_publish.split_undecodable(body))
    ):
        return batch_publish.parse_batch(pieces, caller)
    try:
        request = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if (messages := _one_by_one(body)) is not None:
            return batch_publish.parse_batch(messages, caller)
        raise Invalid(f'the body {published_message.EXPECTED} or {{"messages": […]}} as JSON: {error}') from None
    if request.messages is not None:
        return batch_publish.parse_batch(batch_publish.check_many(request.messages), caller)
    if len(body) > MAX_BYTES + published_message.OVERHEAD:
        raise TooLarge(f"must be at most {MAX_BYTES:,} bytes", field="payload")
    if request.topic is None or request.payload is published_message.NOTHING:
        raise Invalid(published_message.EXPECTED, field="topic" if request.topic is None else "payload")
    return published_message.event_of(request.topic, request.payload, request.id, caller)


def _one_by_one(body: bytes) -> list[bytes] | list[msgspec.Raw] | None:
    """Split a body into messages if one of them is invalid; None if it is not a list of messages."""
    try:
        return batch_publish.check_many(_pieces.decode(body).messages)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return batch_publish.split_undecodable(body) or None
