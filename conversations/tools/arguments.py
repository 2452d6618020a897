"""Arguments that a person wrote, checked by the schema of the tool as it was offered. Called when a call is edited."""

import json
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from conversations import masking
from conversations.envelopes import check_depth
from conversations.errors import Invalid
from conversations.models import ToolSchema

MOST = 256 * 1024  # characters

NOTHING: Registry[Any] = Registry()  # of a schema that refers to an address nothing is fetched


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
        found = min(Draft202012Validator(schema, registry=NOTHING).iter_errors(value), key=_place, default=None)
    except (SchemaError, Unresolvable, RecursionError) as error:
        raise Invalid(f"the tool's schema cannot be used: {str(error)[:200]}", field="arguments") from None
    if found is not None:
        place = ".".join(map(str, found.absolute_path))
        raise Invalid(f"{place or 'the arguments'}: {found.message[:300]}", field="arguments")


def _object(text: str) -> dict[str, Any]:
    try:
        check_depth(text.encode())
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"expected a JSON object: {error}", field="arguments") from None
    if not isinstance(value, dict):
        raise Invalid("expected a JSON object", field="arguments")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _place(error: ValidationError) -> tuple[int, str]:
    return len(error.absolute_path), error.message
