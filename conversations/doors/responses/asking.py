"""Read a request: its JSON → `Asked`, checked, every shape made one, secrets covered. Nothing else of it is kept."""

from typing import Any, TypeVar

import msgspec

from conversations import envelopes, responses
from conversations.actions.responses import not_continuable
from conversations.doors.responses import fields, items, tools
from conversations.errors import Invalid
from conversations.masking import covered
from conversations.responses import Asked

PARAMS = (  # stored as given, where given
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"),
    *("max_output_tokens", "max_tool_calls", "parallel_tool_calls", "text", "reasoning", "truncation", "service_tier"),
    *("metadata", "safety_identifier", "prompt_cache_key", "background", "include", "stream_options"),
)
NOT_ON_SOCKETS = ("stream", "stream_options", "background")
T = TypeVar("T")


def read(body: bytes) -> Asked:
    """Read the body of a request. Raises Invalid with the field, TooLarge."""
    return asked(value_of(body))


def value_of(body: bytes) -> dict[str, Any]:
    """Read a JSON object. Raises Invalid, and TooLarge where it nests too deep."""
    envelopes.check_depth(body)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"expected a JSON object: {error}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise Invalid(f"expected a JSON object; got {type(value).__name__}", code="invalid_json")
    return value


def asked_on_socket(value: dict[str, Any]) -> Asked:
    """Make it of a socket's `response.create`, which is always answered by events and never in the background."""
    for name in NOT_ON_SOCKETS:
        if value.get(name) is not None:
            raise Invalid(f"{name} must not be sent over a websocket: it always streams", field=name)
    return asked(value | {"stream": True})


def asked(value: dict[str, Any]) -> Asked:
    """Make it of a decoded object. Raises Invalid."""
    body: fields.Body = items.check(value, fields.Body)
    if body.model is None:
        raise Invalid("expected the name of an agent or of a model", code="missing_required_parameter", field="model")
    if not body.input and body.previous_response_id is None:
        raise Invalid("expected a text or items", code="missing_required_parameter", field="input")
    chosen, allowed = tools.choice(body.tool_choice, body.allowed_tools)
    params = {name: value[name] for name in PARAMS if value.get(name) is not None}
    check_conversation((body.metadata or {}).get("conversation_id"))
    return Asked(
        model=body.model,
        input=covered(items.read(body.input)),
        instructions=covered(body.instructions),
        previous_response_id=check_previous(body.previous_response_id),
        tools=covered(tools.read(body.tools)),
        tool_choice=chosen,
        allowed_tools=allowed,
        params=covered(params),
        store=body.store is not False,
        stream=body.stream is True,
    )


def check_previous(response: str | None) -> str | None:
    """Answer the id of a response if it may be one of ours. Raises Invalid as for one that is not there."""
    if response is not None and not responses.is_response_id(response):
        raise not_continuable(response)
    return response


def check_conversation(key: str | None) -> None:
    """Raise Invalid unless a conversation may have this id."""
    if key is not None and (not 1 <= len(key) <= envelopes.MAX_KEY or envelopes.fit(key) != key):
        raise Invalid(f"expected 1 to {envelopes.MAX_KEY} characters", field="metadata.conversation_id")
