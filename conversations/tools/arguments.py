"""Arguments that a person wrote, checked by the schema of the tool as it was offered. Called when a call is edited."""

import json
import math
from typing import Any

from jsonschema.exceptions import ValidationError

from conversations import masking
from conversations.envelopes import check_depth
from conversations.errors import Invalid
from conversations.models import ToolSchema
from conversations.tools import checking

MOST = 256 * 1024  # characters


def read(given: dict[str, Any] | str, schema: str) -> tuple[dict[str, Any], str]:
    """Answer arguments as an object and as the text that will run; `schema` is a hash.

    Raises `Invalid` saying where and what was expected.
    """
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MOST:
        raise Invalid(f"expected {MOST:,} characters at most", field="arguments")
    value = _object(text)
    if masking.MASK in text:
        raise Invalid(f"{masking.MASK} covers a secret that the record does not hold: write it out", field="arguments")
    kept = ToolSchema.objects.filter(hash=schema).values_list("body", flat=True).first()
    if kept is None:
        raise Invalid("the tool's schema is not known, so its arguments cannot be changed", field="arguments")
    check(value, json.loads(kept).get("params_json_schema") or {})
    return value, text


def check(value: dict[str, Any], schema: dict[str, Any]) -> None:
    """Hold an object against a JSON schema. Raises `Invalid` naming the first place at fault."""
    try:
        found = min(checking.problems(value, schema), key=_place, default=None)
    except checking.Unusable as error:
        raise Invalid(f"the tool's schema cannot be used: {error}", field="arguments") from None
    if found is not None:
        place = ".".join(map(str, found.absolute_path))
        raise Invalid(f"{place or 'the arguments'}: {found.message[:300]}", field="arguments")


def _object(text: str) -> dict[str, Any]:
    try:
        check_depth(text.encode())
        value = json.loads(text, parse_constant=_no_constant, parse_float=_number)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Invalid("half a character (a lone surrogate) cannot be kept in the record", field="arguments") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"expected a JSON object: {error}", field="arguments") from None
    if not isinstance(value, dict):
        raise Invalid("expected a JSON object", field="arguments")
    return value


def _number(text: str) -> float:
    """Refuse what would become infinite: the record could not hold what runs."""
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text[:20]} is too large a number")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _place(error: ValidationError) -> tuple[int, str]:
    return len(error.absolute_path), error.message
