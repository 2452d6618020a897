"""Input items: what each kind has to hold. They are stored as they came; this only says what is wrong with one."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from conversations import compaction
from conversations.doors.responses.fields import CallId, Name
from conversations.errors import Invalid

EXTENSION = re.compile(r"[a-z0-9_-]{1,64}:[a-z0-9_.-]{1,64}")  # a kind of somebody's own: `slug:type`
Data = Annotated[str, Meta(max_length=32 << 20)]
Status = Literal["in_progress", "completed", "incomplete"]


class InputText(msgspec.Struct, tag_field="type", tag="input_text"):
    """Words."""

    text: str


class InputImage(msgspec.Struct, tag_field="type", tag="input_image"):
    """A picture, by its address or as data."""

    image_url: Data | None = None
    detail: Literal["low", "high", "auto"] | None = None


class InputFile(msgspec.Struct, tag_field="type", tag="input_file"):
    """A file, by its address or as data."""

    filename: str | None = None
    file_data: Data | None = None
    file_url: str | None = None


class InputVideo(msgspec.Struct, tag_field="type", tag="input_video"):
    """A film by its address."""

    video_url: str


class OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    """Words that a model said."""

    text: str
    annotations: list[Any] | None = None


class Refusal(msgspec.Struct, tag_field="type", tag="refusal"):
    """Words by which a model refused."""

    refusal: str


Given = InputText | InputImage | InputFile | InputVideo


class User(msgspec.Struct):
    """What the user said."""

    role: Literal["user"]
    content: str | list[Given]


class Guidance(msgspec.Struct):
    """What the system or the developer said."""

    role: Literal["system", "developer"]
    content: str | list[InputText]


class Assistant(msgspec.Struct):
    """What the model said."""

    role: Literal["assistant"]
    content: str | list[OutputText | Refusal]
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(msgspec.Struct):
    """A call that a model made."""

    call_id: CallId
    name: Name
    arguments: str
    status: Status | None = None


class FunctionCallOutput(msgspec.Struct):
    """What a call came to."""

    call_id: CallId
    output: str | list[Given]
    status: Status | None = None


class Thought(msgspec.Struct):
    """What a model thought."""

    summary: list[Any]
    content: list[Any] | None = None
    encrypted_content: str | None = None


class Reference(msgspec.Struct):
    """An item of the conversation, by its id."""

    id: str


class Compacted(msgspec.Struct):
    """A conversation, compacted by `/v1/responses/compact`."""

    encrypted_content: str


_ROLES: dict[object, type[msgspec.Struct]] = {
    "user": User,
    "system": Guidance,
    "developer": Guidance,
    "assistant": Assistant,
}
_KINDS: dict[object, type[msgspec.Struct]] = {
    "function_call": FunctionCall,
    "function_call_output": FunctionCallOutput,
    "reasoning": Thought,
    "compaction": Compacted,
    "item_reference": Reference,
}


def read(given: str | list[Any] | None) -> list[dict[str, Any]]:
    """Answer the items, a text being one message of the user. Raises Invalid naming the item at fault."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return [_item(item, f"input[{at}]") for at, item in enumerate(given or ())]


def _item(item: object, place: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise Invalid(f"expected an item, an object with a type; got {type(item).__name__}", field=place)
    kind = item.get("type")
    if kind is None and "role" in item:
        item = {"type": "message", **item}  # the short form that clients send
        kind = "message"
    if isinstance(kind, str) and EXTENSION.fullmatch(kind):
        return item
    if kind is None and "id" in item:
        kind = "item_reference"
    check(item, _shape(item, kind, place), place)
    if kind == "compaction" and compaction.text_of(item) is None:
        raise Invalid(
            "this compaction was not made here", code="invalid_compaction", field=f"{place}.encrypted_content"
        )
    return item


def _shape(item: dict[str, Any], kind: object, place: str) -> type[msgspec.Struct]:
    if kind == "message":
        shape, wrong, expected = _of(_ROLES, item.get("role")), "role", ", ".join(map(str, _ROLES))
    else:
        shape, wrong, expected = _of(_KINDS, kind), "type", ", ".join(("message", *map(str, _KINDS)))
    if shape is None:
        raise Invalid(f"expected one of {expected}", field=f"{place}.{wrong}")
    return shape


def _of(shapes: dict[object, type[msgspec.Struct]], name: object) -> type[msgspec.Struct] | None:
    return shapes.get(name) if isinstance(name, str) else None


def check(value: object, shape: Any, place: str = "") -> Any:  # Any: msgspec converts to any type
    """Answer a JSON value as `shape`. Raises Invalid with the path of what is wrong, below `place`."""
    try:
        return msgspec.convert(value, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        what, _, path = str(error).partition(" - at `")
        below = path.rstrip("`").removeprefix("$").replace("[...]", "")
        raise Invalid(
            what[:1].lower() + what[1:].replace("`", ""), field=f"{place}{below}".lstrip(".") or None
        ) from None
