"""What a model is given of a call whose arguments a person changed: the tool's output, and beside it what ran. Called
by `gate` and `fork_memory`.

An output that is a JSON object stays one, with `changed_by_person` beside its own fields; anything else stands under
`output` in an object of that form. Parts that are not text (images, files) stay as they are, the note before them.
"""

import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

KEY, OUTPUT = "changed_by_person", "output"
NOTE = "A person changed the arguments of this call before it ran; the output is of what ran."

_Part = ToolOutputText | ToolOutputImage | ToolOutputFileContent
_part: TypeAdapter[_Part] = TypeAdapter(_Part)


def with_change(output: Any, *, requested: str, ran: str) -> Any:
    """Return a tool's output together with the change: `requested` and `ran` are arguments as JSON text, of the model
    and of the person."""
    change = {"note": NOTE, "ran_with": _read(ran), "instead_of": _read(requested)}
    parts = list(_parts(output))
    if len(parts) == 1 and isinstance(parts[0], ToolOutputText):
        output = parts[0].text
    elif parts:
        return [ToolOutputText(text=json.dumps({KEY: change}, ensure_ascii=False)), *parts]
    value = _value(output)
    if not isinstance(value, dict) or KEY in value or value.keys() == {OUTPUT}:
        value = {OUTPUT: value}
    return json.dumps(value | {KEY: change}, ensure_ascii=False, default=str)


def parted(output: Any) -> tuple[Any, dict[str, Any]]:
    """Return a tool's own output and the change, of an output that `with_change` made; of any other no change."""
    change = output.get(KEY) if isinstance(output, dict) else None
    if not isinstance(change, dict):
        return output, {}
    own = {name: value for name, value in output.items() if name != KEY}
    return (own[OUTPUT] if own.keys() == {OUTPUT} else own), change


def _parts(output: Any) -> Iterator[_Part]:
    """Yield the parts of an output in the SDK's structured form; nothing when one of them has another form."""
    parts = []
    for part in output if isinstance(output, list | tuple) else [output]:
        if not isinstance(part, _Part) and not (isinstance(part, dict) and "type" in part):
            return
        try:
            parts.append(_part.validate_python(part))
        except ValidationError:
            return
    yield from parts


def _value(output: Any) -> Any:
    """Return an output as JSON can hold it; a text that is a JSON object is that object."""
    try:
        text = str(output)
        if text.strip() and isinstance(read := _read(text), dict):
            return read
        if isinstance(output, dict | list | tuple | BaseModel | int | float | bool | None) or is_dataclass(output):
            return to_jsonable_python(output, fallback=str, inf_nan_mode="strings", bytes_mode="base64")
        return text
    except Exception as error:  # a value of a tool: whatever its own methods raise
        return f"<{type(output).__name__} without a text: {type(error).__name__}>"


def _read(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
