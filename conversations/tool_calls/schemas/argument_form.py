"""A tool's schema → the fields of a form, and what was entered → arguments. Called by the page of a question."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from conversations.core import hidden_characters
from conversations.core.errors import Invalid
from conversations.tool_calls.schemas.schema_table import type_of

MAX_ITEMS = 40  # fields; a tool with more is edited as JSON
LEVELS = 8  # of variants in one another; a definition may refer to itself
PREFIX = "arg."  # of a field's name in the form

Schema = dict[str, Any]  # JSON
Kind = Literal["line", "text", "number", "choice", "json"]


@dataclass(frozen=True, slots=True)
class FormField:
    """One field. `value` is the text that stands in it; `choices` are values and their words."""

    name: str
    label: str
    kind: Kind
    type: str
    value: str
    choices: tuple[tuple[str, str], ...]
    description: str
    is_required: bool


def entries(
    schema: Schema, arguments: Mapping[str, Any] | None, entered: Mapping[str, str] | None = None
) -> list[FormField]:
    """Return the fields of the top level, filled with `arguments`, or with what was `entered` before."""
    properties = _properties(schema)
    if len(properties) > MAX_ITEMS:
        return []
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    return [_entry(name, inner, schema, arguments or {}, entered or {}, name in needed) for name, inner in properties]


def read(schema: Schema, posted: Mapping[str, str]) -> dict[str, Any]:
    """Read what was entered: an empty field is null where that is allowed, else left out. Raises `Invalid`."""
    arguments: dict[str, Any] = {}
    for name, inner in _properties(schema):
        text = posted.get(f"{PREFIX}{name}")
        if text is None:
            continue
        kind, is_nullable, choices = _kind(inner, schema)
        if text == "" and (is_nullable or kind not in ("line", "text")):
            if is_nullable:
                arguments[name] = None
            continue
        arguments[name] = _value(name, text.replace("\r\n", "\n"), kind, dict(choices))
    return arguments


def _value(name: str, text: str, kind: Kind, choices: Mapping[str, str]) -> Any:
    if kind in ("line", "text"):
        return text
    if kind == "choice" and text not in choices:
        raise Invalid(f"the field {name} must be one of its choices", field=f"{PREFIX}{name}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        expected = "a number" if kind == "number" else "JSON"
        raise Invalid(f"the field {name} must be {expected}", field=f"{PREFIX}{name}") from None


def _entry(
    name: str, inner: Any, root: Schema, arguments: Mapping[str, Any], entered: Mapping[str, str], is_required: bool
) -> FormField:
    kind, _, choices = _kind(inner, root)
    value = entered.get(f"{PREFIX}{name}")
    if value is None:
        value = _shown(arguments[name], kind) if name in arguments else ""
    about = inner.get("description") if isinstance(inner, dict) else None
    description = about if isinstance(about, str) else ""
    is_long = kind == "line" and (len(value) > 60 or "\n" in value)
    return FormField(
        name=name, label=hidden_characters.spelled_out(name), kind="text" if is_long else kind,
        type=hidden_characters.spelled_out(type_of(inner, root))[:80], value=value, choices=choices,
        description=hidden_characters.spelled_out(description)[:300], is_required=is_required,
    )  # fmt: skip


def _shown(value: Any, kind: Kind) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) and kind in ("line", "text") else json.dumps(value, ensure_ascii=False)


def _kind(inner: Any, root: Schema, levels: int = LEVELS) -> tuple[Kind, bool, tuple[tuple[str, str], ...]]:
    """Return a field's kind, whether it may be null, and its choices as JSON texts with words."""
    resolved = _resolved(inner, root)
    variants = resolved.get("anyOf")
    if isinstance(variants, list):
        others = [_resolved(variant, root) for variant in variants]
        plain = [variant for variant in others if variant.get("type") != "null"]
        if len(plain) == 1 and levels:
            kind, _, choices = _kind(plain[0], root, levels - 1)
            return kind, len(plain) < len(others), choices
        return "json", False, ()
    if isinstance(values := resolved.get("enum"), list):
        texts = [json.dumps(value, ensure_ascii=False) for value in values]
        return "choice", False, tuple((text, hidden_characters.spelled_out(text.strip('"'))[:80]) for text in texts)
    match resolved.get("type"):
        case "boolean":
            return "choice", False, (("true", "yes"), ("false", "no"))
        case "string":
            return "line", False, ()
        case "integer" | "number":
            return "number", False, ()
    return "json", False, ()


def _resolved(schema: Any, root: Schema) -> Schema:
    if not isinstance(schema, dict):
        return {}
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/$defs/"):
        return schema
    definitions = root.get("$defs")
    definition = definitions.get(ref.removeprefix("#/$defs/")) if isinstance(definitions, dict) else None
    return definition if isinstance(definition, dict) and "$ref" not in definition else {}


def _properties(schema: Schema) -> list[tuple[str, Any]]:
    properties = schema.get("properties")
    return [(str(name), inner) for name, inner in properties.items()] if isinstance(properties, dict) else []
