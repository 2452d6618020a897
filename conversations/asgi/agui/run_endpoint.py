"""`POST /api/v1/agui/agents/{name}`: run an agent with a `RunAgentInput` in a conversation, the thread, and stream its
events until the run ends or waits for a decision.

The run belongs to the worker and continues when the client disconnects. An invalid input is answered with a status,
before the stream starts; a later error is the stream's last event, RUN_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ag_ui.core import BaseEvent

from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.asgi.agui import front_end_input, interrupt_answers
from conversations.asgi.agui.run_encoder import RunEncoder, RunSegment, as_sse
from conversations.asgi.responses.endpoint import STILL_HERE, STREAM_HEADERS, Wire, following, stopping
from conversations.asgi.responses.shared import ResponsesContext, in_thread_if_large, trouble
from conversations.core.errors import SwitchboardError, Unavailable
from conversations.events.log.records import Stored
from conversations.events.payload import MAX_BYTES
from conversations.runs.responses import create
from conversations.runs.responses.create import Received


class _Begun(NamedTuple):
    """A run that was started, its follower and its encoder."""

    received: Received
    encoder: RunEncoder
    warnings: list[str]


class RunEndpoint:
    """The route; `scope["named"]` is the agent."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Serve one request. Raises errors that are answered with a status."""
        caller = await self._context.admit(scope)
        body = await route.body(scope, receive, MAX_BYTES)
        with self._context.reading(caller) as reader:
            begun = await self._context.do(_begin, caller, scope["named"], body)
            with following(self._context, reader, begun.received, scope, receive, send) as wire:
                await self._stream(wire, begun)

    async def _stream(self, wire: Wire, begun: _Begun) -> None:
        encoder = begun.encoder
        await wire.start(STREAM_HEADERS)
        first = [*encoder.begin(), *(encoder.note("warning", warning) for warning in begun.warnings)]
        await wire.pieces([*map(as_sse, [*first, *encoder.interrupt()])])
        try:
            if not encoder.is_over:
                await self._rest(wire, encoder)
        except OSError:  # the client left
            raise
        except Exception as error:
            await wire.pieces([*map(as_sse, encoder.fail(trouble(wire.begun, error)))])
        await wire.end(b"")

    async def _rest(self, wire: Wire, encoder: RunEncoder) -> None:
        async for events in self._context.events(wire.begun):
            await wire.wait_until_allowed()
            if wire.reader.dismissal is not None:
                pieces = _written(encoder.fail(wire.reader.dismissal))
            else:
                pieces = await in_thread_if_large(events, _encode, encoder, events)
                if not encoder.is_over and (wire.is_stopping or wire.begun.progress.is_late):
                    pieces += _written(encoder.fail(stopping() if wire.is_stopping else _late()))
            if wire.is_over:
                return
            await (wire.pieces(pieces) if pieces else wire.send_keepalive(STILL_HERE))
            if encoder.is_over:
                return


def _begin(caller: Caller, agent: str, body: bytes) -> _Begun:
    """Start the requested run, or continue one. Sync, in a thread."""
    request = front_end_input.read(body)
    create.agent_of(agent)
    warnings: list[str] = []
    if request.resume:
        if (resumed := interrupt_answers.resume(caller, request)) is not None:
            received = Received("", request.thread, resumed.segment.run, resumed.seq, 0, {}, False)
            return _Begun(received, RunEncoder(resumed.segment, resumed.open), resumed.warnings)
        warnings = [f"{entry.interrupt_id[:80]!r} is not an interrupt of this thread" for entry in request.resume]
    interrupt_answers.require_none_open(request.thread)
    received = create.receive(caller.principal, front_end_input.request_of(agent, request))
    segment = RunSegment(request.thread, request.run, received.run, received.response, agent)
    return _Begun(received._replace(body={}), RunEncoder(segment), warnings)


def _encode(encoder: RunEncoder, events: Sequence[Stored]) -> list[bytes]:
    return _written(made for event in events for made in encoder.encode(event))


def _written(events: Iterable[BaseEvent]) -> list[bytes]:
    return [as_sse(event) for event in events]


def _late() -> SwitchboardError:
    return Unavailable("nothing happened for a long time; the run continues", code="still_in_progress")
