"""JSON values: converted to our types, as texts, and without values that JSON does not have. No Django."""

import json
import math
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

T = TypeVar("T")


class Converter(Generic[T]):
    """Converts values to one type, from any number of threads. Create it at import.

    msgspec 0.22 publishes what it knows of a struct on first use before it is complete: another thread that uses the
    struct in that moment crashes the process. A decoder, created once, learns all of it.
    """

    def __init__(self, kind: Any) -> None:  # Any: a class, or one with limits (`Annotated`), which is none to mypy
        msgspec.json.Decoder(kind)
        self._kind = kind

    def convert(self, value: object) -> T:
        """Return the value as the type. Raises msgspec's ValidationError."""
        converted: T = msgspec.convert(value, self._kind)
        return converted


def text_of(value: object) -> str | None:
    """Return a value that is a text; None for any other."""
    return value if isinstance(value, str) else None


def as_text(value: object) -> str:
    """Return a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parse(text: str) -> Any:  # any JSON
    """Parse a stored text; a number that Python does not hold stays as it was written. None for what is not JSON."""
    try:
        return json.loads(text, parse_int=whole_of, parse_float=number_of)
    except (ValueError, RecursionError):
        return None


def parse_object(text: str) -> dict[str, Any] | None:
    """Parse a text that is an object, or empty; None for any other."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def compact(value: object) -> str:
    """Write compact JSON that a column can hold: a lone surrogate as an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def canonical(value: object) -> str:
    """Write compact JSON in which equal objects are equal texts: keys in order. Lone surrogates stay."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def number_of(text: str) -> float | str:
    """Read a number; one that no float holds stays as it was written, since JSON has no infinity. For `parse_float`."""
    value = float(text)
    return value if math.isfinite(value) else text


def whole_of(text: str) -> int | str:
    """Read a whole number of 18 digits at most; a longer one stays as it was written. For `parse_int`."""
    return int(text) if len(text) < 19 else text


def finite_or_name(value: float) -> float | str:
    """Return a number; for NaN and the infinities, which JSON does not have, their names in the JSON of Protobuf."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and the infinities, which Python's parser accepts as JSON. For `parse_constant`."""
    raise ValueError(f"{name} is not valid JSON")
