"""Parse a request into a `ResponseRequest`: validated, normalized, with secrets masked. Nothing else of it is kept."""

from typing import Any, TypeVar

import msgspec

from conversations.asgi.responses import input_items, request_schema, tools_and_choice
from conversations.core import sliced_json
from conversations.core.errors import Invalid
from conversations.core.secret_masking import mask_json
from conversations.events import payload, response_ids
from conversations.events.response_ids import ResponseRequest
from conversations.runs.responses.create import not_continuable

OWN_FIELDS = frozenset(ResponseRequest.__struct_fields__)  # all others are stored as given, under `params`
NOT_ON_SOCKETS = ("stream", "stream_options", "background")
T = TypeVar("T")


def read(body: bytes) -> ResponseRequest:
    """Parse the body of a request. Raises Invalid with the field, TooLarge."""
    return parse_body(value_of(body))


def value_of(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises Invalid, and TooLarge if it is nested too deeply."""
    payload.check_depth(body)
    try:
        value = sliced_json.decode(body, payload.MAX_DEPTH)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"the request must be a JSON object: {error}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise Invalid(f"the request must be a JSON object; got {type(value).__name__}", code="invalid_json")
    return value


def parse_socket_frame(value: dict[str, Any]) -> ResponseRequest:
    """Parse a socket's `response.create`, which is always answered with events and never in the background."""
    for name in NOT_ON_SOCKETS:
        if value.get(name) is not None:
            raise Invalid(f"the parameter {name} must not be sent over a WebSocket, which always streams", field=name)
    return parse_body(value | {"stream": True})


def parse_body(value: dict[str, Any]) -> ResponseRequest:
    """Parse a decoded object. Raises Invalid."""
    body = input_items.check(value, request_schema.body_shape)
    if body.model is None:
        raise Invalid("must be the name of an agent or a model", code="missing_required_parameter", field="model")
    if not body.input and body.previous_response_id is None:
        raise Invalid("must be a string or a list of items", code="missing_required_parameter", field="input")
    if request_schema.LOGPROBS in (body.include or ()):
        raise Invalid(f"must not have {request_schema.LOGPROBS}: no log probabilities are returned", field="include")
    chosen, allowed = tools_and_choice.read_choice(body.tool_choice, body.allowed_tools)
    others = [name for name in body.__struct_fields__ if name not in OWN_FIELDS]
    params = {name: value[name] for name in others if value.get(name) is not None}
    check_conversation((body.metadata or {}).get("conversation_id"), "metadata.conversation_id")
    return ResponseRequest(
        model=body.model,
        input=mask_json(input_items.read(body.input)),
        instructions=mask_json(body.instructions),
        previous_response_id=check_previous(body.previous_response_id),
        tools=mask_json(tools_and_choice.read_tools(body.tools)),
        tool_choice=chosen,
        allowed_tools=allowed,
        params=mask_json(params),
        conversation=_conversation(body),
        store=_stored(body),
        stream=body.stream is True,
    )


def check_previous(response: str | None) -> str | None:
    """Return the id of a response if it may be one of ours. Raises Invalid like for one that does not exist."""
    if response is not None and not response_ids.is_response_id(response):
        raise not_continuable(response)
    return response


def _conversation(body: request_schema.ResponseBody) -> str | None:
    """Return the conversation whose memory is requested. Raises Invalid if it is combined with another choice of
    conversation."""
    named = body.conversation
    key = named.id if isinstance(named, request_schema.ConversationName) else named
    check_conversation(key, "conversation")
    if key is None:
        return None
    if body.previous_response_id is not None:
        raise Invalid("must not be combined with previous_response_id", field="conversation")
    if (body.metadata or {}).get("conversation_id", key) != key:
        raise Invalid("must match metadata.conversation_id", field="conversation")
    return key


def _stored(body: request_schema.ResponseBody) -> bool:
    """Return whether it can be continued. Raises Invalid for a background response, which is later read by its id and
    so must be stored."""
    if body.background and body.store is False:
        raise Invalid("must be used with store=true: background responses are retrieved by ID", field="background")
    return body.store is not False


def check_conversation(key: str | None, field: str) -> None:
    """Raise Invalid unless this is a valid conversation id."""
    if key is not None and (not 1 <= len(key) <= payload.MAX_KEY or payload.clean_text(key) != key):
        raise Invalid(f"must be 1 to {payload.MAX_KEY} characters", field=field)
