"""JSON that fits a schema, filled from what was written: the demo model's tool arguments and structured answers."""

import re
from collections.abc import Mapping
from typing import Any

from agents_app import demo_reading
from agents_app.demo_reading import Reading

CUT = 500  # characters of a summary or a description
WORDS = "conversation|text|input|message|content|report|words|question|query|topic_text"
MAX_DEPTH = 6

Schema = Mapping[str, Any]


def fill(schema: Schema, reading: Reading, known: Mapping[str, Any]) -> dict[str, Any]:
    """Answer an object with every property of the schema; `known` values (of earlier tool results) come first."""
    filled = _object(schema, reading, known, schema.get("$defs", {}), 0)
    return filled if isinstance(filled, dict) else {}


def _object(schema: Schema, reading: Reading, known: Mapping[str, Any], defs: Schema, depth: int) -> dict[str, Any]:
    return {
        name: known[name] if name in known else _value(name, part, reading, defs, depth + 1)
        for name, part in schema.get("properties", {}).items()
    }


def _value(name: str, schema: Schema, reading: Reading, defs: Schema, depth: int) -> Any:
    schema, may_be_null = _resolved(schema, defs)
    if "const" in schema:
        return schema["const"]
    if options := schema.get("enum"):
        return _choice(name, options, reading)
    said = _said(name, reading)
    if said is None and may_be_null:
        return None
    match schema.get("type"):
        case "object":
            return _object(schema, reading, {}, defs, depth) if depth < MAX_DEPTH else {}
        case "array":
            item = schema.get("items", {})
            return [_value(name, item, reading, defs, depth + 1) for _ in range(min(schema.get("minItems", 0), 3))]
        case "integer" | "number":
            return _number(said, schema, reading)
        case "boolean":
            return False
        case "null":
            return None
    return _text(said, schema, reading)


def _resolved(schema: Schema, defs: Schema) -> tuple[Schema, bool]:
    """Follow references, and `X | null` to X; say whether null would do."""
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


def _said(name: str, reading: Reading) -> Any:
    """Answer what the writer said for a field of this name; None when nothing is known of it."""
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
            return demo_reading.date_of(reading.text)
        case "reporter_name" | "name":
            return demo_reading.name_of(reading.text)
        case "sentiment":
            return reading.sentiment
        case "reference":
            found = re.search(r"\b[A-Z]{2,4}-[0-9A-Z]{4,}\b", reading.text)
            return found and found[0]
    return None


def _choice(name: str, options: list[Any], reading: Reading) -> Any:
    said = _said(name, reading)
    if said in options:
        return said
    words = reading.text.lower()
    return next((option for option in options if str(option).lower() in words), options[0])


def _number(said: Any, schema: Schema, reading: Reading) -> int | float:
    found = re.search(r"-?\d{1,9}", reading.text)
    value = said if isinstance(said, int) else int(found[0]) if found else 0
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    return max(low, min(high, value))  # type: ignore[no-any-return]  # bounds of a JSON schema


def _text(said: Any, schema: Schema, reading: Reading) -> str:
    if schema.get("format") == "date":
        return str(said or "2000-01-01")
    text = str(said) if said is not None else _thing(reading)
    return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), ".")


def _thing(reading: Reading) -> str:
    """Pick what a field nobody told us about may mean: a quoted text, a place, a name, else all of it."""
    quoted = re.search(r"[\"“«]([^\"”»]+)[\"”»]", reading.text)
    names = re.findall(r"(?<=\s)[A-ZÀ-Ý][\w'’-]+", reading.text)
    return (quoted and quoted[1]) or reading.place or (names[-1] if names else cut(reading.text, 120))


def topic_of(reading: Reading) -> str:
    """Name what a message is about in a few words."""
    found = re.search(
        r"(?i)\b(librar\w+|bus|park|playground|school|website|office|staff|clerk|registry|pool|tax"
        r"|permit|passport|collection|road|traffic|festival|market|museum|town hall|service|app|parking)\b",
        reading.text,
    )
    return found[1].lower() if found else reading.kind or "the town's services"


def cut(text: str, at: int = CUT) -> str:
    """Shorten at a space, with an ellipsis."""
    return text if len(text) <= at else text[: at - 1].rsplit(" ", 1)[0] + "…"
