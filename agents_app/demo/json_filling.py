"""JSON for a schema, filled from a message: the demo model's tool arguments and structured answers."""

import re
from collections.abc import Mapping
from typing import Any

from agents_app.demo import text_rules
from agents_app.demo.text_rules import Reading

CUT = 500  # characters of a summary or a description
WORDS = "conversation|text|input|message|content|report|words|question|query|topic_text"
MAX_DEPTH = 6

Schema = Mapping[str, Any]


def fill(schema: Schema, reading: Reading, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with every property of the schema; `values` (from earlier tool results) take precedence."""
    filled = _object(schema, reading, values, schema.get("$defs", {}), 0)
    return filled if isinstance(filled, dict) else {}


def _object(schema: Schema, reading: Reading, values: Mapping[str, Any], defs: Schema, depth: int) -> dict[str, Any]:
    return {
        name: values[name] if name in values else _value(name, part, reading, defs, depth + 1)
        for name, part in schema.get("properties", {}).items()
    }


def _value(name: str, schema: Schema, reading: Reading, defs: Schema, depth: int) -> Any:
    schema, may_be_null = _resolved(schema, defs)
    if "const" in schema:
        return schema["const"]
    if options := schema.get("enum"):
        return _choice(name, options, reading)
    value = _stated_value(name, reading)
    if value is None and may_be_null:
        return None
    match schema.get("type"):
        case "object":
            return _object(schema, reading, {}, defs, depth) if depth < MAX_DEPTH else {}
        case "array":
            item = schema.get("items", {})
            return [_value(name, item, reading, defs, depth + 1) for _ in range(min(schema.get("minItems", 0), 3))]
        case "integer" | "number":
            return _number(value, schema, reading)
        case "boolean":
            return False
        case "null":
            return None
    return _text(value, schema, reading)


def _resolved(schema: Schema, defs: Schema) -> tuple[Schema, bool]:
    """Follow references, and `X

    null` to X; return also whether null is allowed.
    """
    may_be_null = False
    for _ in range(MAX_DEPTH):
        if "$ref" in schema:
            schema = defs.get(str(schema["$ref"]).rpartition("/")[2], {})
        elif options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            may_be_null = may_be_null or any(option.get("type") == "null" for option in options)
            schema = next((option for option in options if option.get("type") != "null"), {})
        elif isinstance(schema.get("type"), list):
            may_be_null = "null" in schema["type"]
            schema = dict(schema) | {"type": next((t for t in schema["type"] if t != "null"), "null")}
        else:
            break
    return schema, may_be_null


def _stated_value(name: str, reading: Reading) -> Any:
    """Return what the message says for a field with this name; None if nothing."""
    if re.fullmatch(WORDS, name):
        return reading.text
    match name:
        case "description" | "summary":
            return cut(reading.text)
        case "topic" | "subject":
            return topic_of(reading)
        case "incident_type" | "kind" | "category":
            return reading.kind or "incident"
        case "location" | "place" | "where" | "address" | "street":
            return reading.place or None
        case "severity_level" | "severity" | "priority":
            return reading.severity
        case "date_of_occurrence" | "date":
            return text_rules.date_of(reading.text)
        case "reporter_name" | "name":
            return text_rules.name_of(reading.text)
        case "sentiment":
            return reading.sentiment
        case "reference":
            match = re.search(r"\b[A-Z]{2,4}-[0-9A-Z]{4,}\b", reading.text)
            return match and match[0]
    return None


def _choice(name: str, options: list[Any], reading: Reading) -> Any:
    value = _stated_value(name, reading)
    if value in options:
        return value
    lowered = reading.text.lower()
    return next((option for option in options if str(option).lower() in lowered), options[0])


def _number(field_value: Any, schema: Schema, reading: Reading) -> int | float:
    match = re.search(r"-?\d{1,9}", reading.text)
    value = field_value if isinstance(field_value, int) else int(match[0]) if match else 0
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    return max(low, min(high, value))  # type: ignore[no-any-return]  # bounds of a JSON schema


def _text(value: Any, schema: Schema, reading: Reading) -> str:
    if schema.get("format") == "date":
        return str(value or "2000-01-01")
    text = str(value) if value is not None else _thing(reading)
    return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), ".")


def _thing(reading: Reading) -> str:
    """Return what an unknown field may mean: a quoted text, a place, a name, else the whole message."""
    quoted = re.search(r"[\"“«]([^\"”»]+)[\"”»]", reading.text)
    names = re.findall(r"(?<=\s)[A-ZÀ-Ý][\w'’-]+", reading.text)
    return (quoted and quoted[1]) or reading.place or (names[-1] if names else cut(reading.text, 120))


def topic_of(reading: Reading) -> str:
    """Return the topic of a message in a few words."""
    match = re.search(
        r"(?i)\b(librar\w+|bus|park|playground|school|website|office|staff|clerk|registry|pool|tax"
        r"|permit|passport|collection|road|traffic|festival|market|museum|town hall|service|app|parking)\b",
        reading.text,
    )
    return match[1].lower() if match else reading.kind or "the town's services"


def cut(text: str, at: int = CUT) -> str:
    """Shorten at a space, with an ellipsis."""
    return text if len(text) <= at else text[: at - 1].rsplit(" ", 1)[0] + "…"
