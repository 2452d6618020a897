"""`/v1/responses/{id}`: a response from the record, its input, its cancellation and its deletion.

It is visible to everyone who may view the conversation; one with `store=false` only to its requester.
"""

from __future__ import annotations

import asyncio
import time

import msgspec

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.asgi.responses import resource
from conversations.asgi.responses.endpoint import ResponsesEndpoint
from conversations.asgi.responses.shared import ResponsesContext
from conversations.core.errors import Invalid
from conversations.core.url_converters import whole_number
from conversations.events import payload, response_ids
from conversations.events.response_ids import Json
from conversations.runs.responses import cancel_or_delete, stored_response
from conversations.runs.responses.create import Received
from conversations.runs.responses.stored_response import StoredResponse

VIEW = "view"
READING = ("GET", "HEAD")
INCLUDE = ("include", "include[]")  # a list, as clients send one; what is stored is returned without it, too
CANCEL_PATIENCE, POLL_EVERY_S = 5.0, 0.1  # seconds to wait for a cancelled run's end, and between looks
MAX_LIMIT, DEFAULT_LIMIT = 100, 20  # of one page of input items: at most, and where the request does not say


class StoredResponseEndpoint:
    """`GET`, as JSON or as its stream again, and `DELETE`."""

    def __init__(self, context: ResponsesContext, endpoint: ResponsesEndpoint) -> None:
        self._context, self._endpoint = context, endpoint

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        if scope["method"] == "DELETE":
            caller = await self._context.admit(scope, ("DELETE",))
            await route.answer(send, 200, await self._context.do(_delete, caller, scope["named"]))
            return
        caller = await self._context.admit(scope, (*READING, "DELETE"), VIEW)
        starting_after = _starting_after(route.query(scope, ignored=INCLUDE))
        stored = await self._context.do(find, caller, scope["named"])
        with self._context.reading(caller) as reader:
            if starting_after is None or scope["method"] == "HEAD":  # which has no body to follow
                await route.answer(send, 200, msgspec.json.encode(shown(stored)))
            else:
                received = received_of(stored)
                await self._endpoint.tell(reader, received, scope, receive, send, starting_after=starting_after)


class InputItemsEndpoint:
    """`GET …/input_items`: the input, in pages."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        caller = await self._context.admit(scope, READING, VIEW)
        query = route.query(scope, ignored=INCLUDE)
        stored = await self._context.do(find, caller, scope["named"])
        await route.answer(send, 200, msgspec.json.encode(_page(_input_items(stored), query)))


class CancelEndpoint:
    """`POST …/cancel`: end the run, and return the response once it has ended."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        caller = await self._context.admit(scope, ("POST",))
        stored = await self._context.do(_cancel, caller, scope["named"])
        deadline = time.monotonic() + CANCEL_PATIENCE
        while stored.end is None and time.monotonic() < deadline:
            await asyncio.sleep(POLL_EVERY_S)
            stored = await self._context.do(find, caller, scope["named"])
        await route.answer(send, 200, msgspec.json.encode(shown(stored)))


def find(caller: Caller, response: str) -> StoredResponse:
    """Read a response that this caller may view, by its current permissions. Raises NotFound."""
    stored = stored_response.find(response) if response_ids.is_response_id(response) else None
    is_own = stored is not None and stored.asked_by == str(caller.principal)
    if stored is None or not (stored.is_stored or is_own):
        raise cancel_or_delete.not_there(response)
    if not permissions.has_permission(caller.principal, VIEW, f"conversation:{stored.conversation}"):
        raise cancel_or_delete.not_there(response)
    return stored


def received_of(stored: StoredResponse) -> Received:
    """Return it in the form that can be followed."""
    return Received(stored.id, stored.conversation, stored.run, stored.seq, stored.at, stored.body, stored.must_wait)


def shown(stored: StoredResponse) -> Json:
    """Return the response as it is: completed, or the progress of its run and what it waits for."""
    received = received_of(stored)
    ended = resource.ending(received, stored.end) if stored.end is not None else None
    if ended is not None:
        return resource.cancelled(ended)
    waits = resource.waiting(stored.run_reason) if stored.run_status == "waiting" else None
    return resource.resource(received, "queued" if stored.run_status == "queued" else "in_progress", incomplete=waits)


def _delete(caller: Caller, response: str) -> bytes:
    find(caller, response)
    cancel_or_delete.delete(caller.principal, response)
    return msgspec.json.encode({"id": response, "object": "response", "deleted": True})


def _cancel(caller: Caller, response: str) -> StoredResponse:
    find(caller, response)
    cancel_or_delete.cancel(caller.principal, response)
    return find(caller, response)


def _starting_after(query: dict[str, str]) -> int | None:
    """Parse `stream` and `starting_after`: the number of the client's last event, -1 for none. None: no stream is
    requested. Raises Invalid."""
    if query.get("stream", "false") not in ("true", "false"):
        raise Invalid("must be true or false", field="stream")
    value = query.get("starting_after")
    if query.get("stream") != "true":
        if value is not None:
            raise Invalid("must be used with stream=true", field="starting_after")
        return None
    return -1 if value is None else whole_number(value, "starting_after", 0, 1 << 53)


def _input_items(stored: StoredResponse) -> list[Json]:
    return [_input_item(item) for item in response_ids.input_items(stored.id, stored.body["input"])]


def _input_item(item: Json) -> Json:
    """Return an item of a request as clients expect a stored one: with a type, and parts for a text."""
    if response_ids.is_reference(item):
        return item | {"type": "item_reference"}
    stored_item: Json = {"status": "completed", "type": "message", **item}
    if stored_item["type"] == "message" and isinstance(stored_item.get("content"), str):
        part = "output_text" if stored_item.get("role") == "assistant" else "input_text"
        stored_item["content"] = [{"type": part, "text": stored_item["content"]}]
    return stored_item


def _page(items: list[Json], query: dict[str, str]) -> Json:
    """Return the requested page: `order` (newest first by default), `after` an id, `limit`."""
    if query.get("order", "desc") not in ("asc", "desc"):
        raise Invalid("must be asc or desc", field="order")
    ordered = items if query.get("order") == "asc" else items[::-1]
    limit = whole_number(query.get("limit", str(DEFAULT_LIMIT)), "limit", 1, MAX_LIMIT)
    if after := query.get("after"):
        place = next((index for index, item in enumerate(ordered) if item["id"] == after), None)
        if place is None:
            raise Invalid(f"this input has no item {payload.clean_text(after[:80])!r}", field="after")
        ordered = ordered[place + 1 :]
    page = ordered[:limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"object": "list", "data": page, **ends, "has_more": len(ordered) > limit}
