"""`POST /v1/responses/compact`: return a conversation as one item, which is accepted as input again.

`conversations.conversation.compaction` defines how. No model is called, nothing is stored, and the same request always
has the same output.
"""

from __future__ import annotations

import time

import msgspec

from conversations.access.authentication import Caller, require_still
from conversations.asgi import route
from conversations.asgi.responses import input_items, parse_request, request_schema
from conversations.asgi.responses.shared import ResponsesContext
from conversations.conversation import compaction
from conversations.core.errors import Invalid
from conversations.events.payload import MAX_BYTES
from conversations.events.response_ids import new_response_id
from conversations.runs.responses import response_chain
from conversations.runs.responses.create import agent_of, previous_of

NOTHING_SPENT = {
    "input_tokens": 0,
    "output_tokens": 0,
    "total_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class CompactEndpoint:
    """The route."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        with self._context.counting_refusals():
            caller = await self._context.admit(scope)
            body = await route.body(scope, receive, MAX_BYTES)
            await route.answer(send, 200, await self._context.do(_compact, caller, body))


def _compact(caller: Caller, body: bytes) -> bytes:
    """Compact the chain of `previous_response_id`, limited to its newest 4 MiB, then the input. Raises `NotSignedIn` if
    the caller was revoked while the body came."""
    require_still(caller)
    request = input_items.check(parse_request.value_of(body), request_schema.compact_shape)
    agent_of(request.model)
    earlier = previous_of(parse_request.check_previous(request.previous_response_id), "")
    items = [*(response_chain.of(earlier.id).items if earlier else ()), *input_items.read(request.input)]
    if not items:
        raise Invalid("must be a string or a list of items", code="missing_required_parameter", field="input")
    compacted = {
        "id": new_response_id(),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [compaction.item_of(items)],
        "usage": NOTHING_SPENT,
    }
    return msgspec.json.encode(compacted)
