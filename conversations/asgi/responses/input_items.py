"""The schemas of input items. Items are stored as they arrive; this module only reports what is wrong with one."""

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from conversations.asgi.responses.request_schema import CallId, Name
from conversations.conversation import compaction
from conversations.core.errors import Invalid
from conversations.core.json_values import Converter

EXTENSION = re.compile(r"[a-z0-9_-]{1,64}:[a-z0-9_.-]{1,64}")  # a kind of somebody's own: `slug:type`
Data = Annotated[str, Meta(max_length=32 << 20)]
Status = Literal["in_progress", "completed", "incomplete"]
T = TypeVar("T")


class InputText(msgspec.Struct, tag_field="type", tag="input_text"):
    """A text."""

    text: str


class InputImage(msgspec.Struct, tag_field="type", tag="input_image"):
    """An image, as a URL or as data."""

    image_url: Data | None = None
    detail: Literal["low", "high", "auto"] | None = None


class InputFile(msgspec.Struct, tag_field="type", tag="input_file"):
    """A file, as a URL or as data."""

    filename: str | None = None
    file_data: Data | None = None
    file_url: str | None = None


class OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    """A text by a model."""

    text: str
    annotations: list[Any] | None = None


class RefusalPart(msgspec.Struct, tag_field="type", tag="refusal"):
    """A model's refusal."""

    refusal: str


Given = InputText | InputImage | InputFile


class UserMessageItem(msgspec.Struct):
    """A message of the user."""

    role: Literal["user"]
    content: str | list[Given]


class GuidanceItem(msgspec.Struct):
    """A message of the system or the developer."""

    role: Literal["system", "developer"]
    content: str | list[InputText]


class AssistantItem(msgspec.Struct):
    """A message of the model."""

    role: Literal["assistant"]
    content: str | list[OutputText | RefusalPart]
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(msgspec.Struct):
    """A tool call by a model."""

    call_id: CallId
    name: Name
    arguments: str
    status: Status | None = None


class FunctionCallOutput(msgspec.Struct):
    """The output of a tool call."""

    call_id: CallId
    output: str | list[Given]
    status: Status | None = None


class ReasoningItem(msgspec.Struct):
    """A model's reasoning."""

    summary: list[Any]
    content: list[Any] | None = None
    encrypted_content: str | None = None


class ItemReference(msgspec.Struct):
    """An item of the conversation, by its id."""

    id: str


class CompactedItem(msgspec.Struct):
    """A conversation, compacted by `/v1/responses/compact`."""

    encrypted_content: str


Shape = Converter[msgspec.Struct]
_ROLES: dict[object, Shape] = {
    "user": Shape(UserMessageItem),
    "system": Shape(GuidanceItem),
    "developer": Shape(GuidanceItem),
    "assistant": Shape(AssistantItem),
}
_KINDS: dict[object, Shape] = {
    "function_call": Shape(FunctionCall),
    "function_call_output": Shape(FunctionCallOutput),
    "reasoning": Shape(ReasoningItem),
    "compaction": Shape(CompactedItem),
    "item_reference": Shape(ItemReference),
}


def read(raw_input: str | list[Any] | None) -> list[dict[str, Any]]:
    """Return the items; a string becomes one message of the user. Raises Invalid naming the invalid item."""
    if isinstance(raw_input, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": raw_input}]}]
    return [_item(item, f"input[{at}]") for at, item in enumerate(raw_input or ())]


def _item(item: object, field_path: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise Invalid(f"must be an item, an object with a type; got {type(item).__name__}", field=field_path)
    kind = item.get("type")
    if kind is None and "role" in item:
        item = {**item, "type": "message"}  # the short form that clients send
        kind = "message"
    if isinstance(kind, str) and EXTENSION.fullmatch(kind):
        return item
    if kind is None and "id" in item:
        kind = "item_reference"
    check(item, _shape(item, kind, field_path), field_path)
    if kind == "compaction" and compaction.text_of(item) is None:
        raise Invalid(
            "must be a compaction created by this server",
            code="invalid_compaction",
            field=f"{field_path}.encrypted_content",
        )
    return item


def _shape(item: dict[str, Any], kind: object, field_path: str) -> Shape:
    if kind == "message":
        shape, wrong, expected = _of(_ROLES, item.get("role")), "role", ", ".join(map(str, _ROLES))
    else:
        shape, wrong, expected = _of(_KINDS, kind), "type", ", ".join(("message", *map(str, _KINDS)))
    if shape is None:
        raise Invalid(f"must be one of {expected}", field=f"{field_path}.{wrong}")
    return shape


def _of(shapes: dict[object, Shape], name: object) -> Shape | None:
    return shapes.get(name) if isinstance(name, str) else None


def check(value: object, shape: Converter[T], field_path: str = "") -> T:
    """Return a JSON value as `shape`. Raises Invalid with the path of the error, below `field_path`."""
    try:
        return shape.convert(value)
    except (msgspec.ValidationError, RecursionError) as error:
        what, _, path = str(error).partition(" - at `")
        below = path.rstrip("`").removeprefix("$").replace("[...]", "")
        raise Invalid(
            what[:1].lower() + what[1:].replace("`", ""), field=f"{field_path}{below}".lstrip(".") or None
        ) from None
