"""`POST /v1/responses/compact`: a conversation as one item, which is accepted as input again.

`conversations.compaction` says what becomes of it. No model is asked, nothing is stored, and the same request has the
same output.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from conversations import chain_items, compaction
from conversations.actions.responses import agent_of, previous_of
from conversations.doors import http
from conversations.doors.responses import asking, fields, items
from conversations.doors.responses.house import House, refuse
from conversations.envelopes import MAX_BYTES
from conversations.errors import Invalid, SwitchboardError
from conversations.responses import new_response_id

NOTHING_SPENT = {
    "input_tokens": 0,
    "output_tokens": 0,
    "total_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class CompactDoor:
    """The route."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer one request."""
        try:
            await self._house.admit(scope)
            body = await http.body(scope, receive, MAX_BYTES)
            compacted = await self._house.do(_compact, body)
        except SwitchboardError as error:
            self._house.count_refusal(error)
            await refuse(send, error)
        else:
            await http.answer(send, 200, msgspec.json.encode(compacted))


def _compact(body: bytes) -> dict[str, Any]:
    """Compact the chain of `previous_response_id`, then the input."""
    asked: fields.Compact = items.check(asking.value_of(body), fields.Compact)
    agent_of(asked.model)
    earlier = previous_of(asking.check_previous(asked.previous_response_id), "")
    given = [*(chain_items.of(earlier.id) if earlier else ()), *items.read(asked.input)]
    if not given:
        raise Invalid("expected a text or items", code="missing_required_parameter", field="input")
    return {
        "id": new_response_id(),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [compaction.item_of(given)],
        "usage": NOTHING_SPENT,
    }
