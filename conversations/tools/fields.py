"""A JSON schema → rows of a table: each field with its type, whether it is required, default, constraints, words."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_ROWS = 200
MAX_DEPTH = 6
MAX_NODES = 2_000  # looked at for the rows
MAX_REFS = 20  # one after the other
MAX_TEXT = 2_000

Schema = dict[str, Any]  # JSON

_BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
    "format": "format {}",
    "pattern": "matches {}",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One row. `depth` 0 is an argument; texts are as the schema has them, not fit for HTML."""

    depth: int
    name: str
    type: str
    is_required: bool
    default: str | None
    constraints: tuple[str, ...]
    description: str


def fields_of(schema: object) -> tuple[list[Field], bool]:
    """Answer the rows of an object's schema, and whether more were left out."""
    root = schema if isinstance(schema, dict) else {}
    rows = list(islice(_Walk(root).rows(root), MAX_ROWS + 1))
    return rows[:MAX_ROWS], len(rows) > MAX_ROWS


def type_of(schema: object, root: Schema) -> str:
    """Say a schema's type in a few words."""
    if schema is True or schema == {}:
        return "anything"
    if not isinstance(schema, dict):
        return "nothing"
    found = _resolved(schema, root)
    for word, joint in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if isinstance(variants := found.get(word), list) and variants:
            return joint.join(dict.fromkeys(_plain(variant, root) for variant in variants[:20]))
    return _plain(schema, root)


class _Walk:
    """Goes through a schema's objects within a budget: references can fan out without end."""

    def __init__(self, root: Schema) -> None:
        self._root, self._left = root, MAX_NODES

    def rows(self, schema: Schema, depth: int = 0, refs: tuple[str, ...] = ()) -> Iterator[Field]:
        """Answer the fields of an object; `refs` are the definitions that the walk is inside, so that a cycle ends."""
        if depth > MAX_DEPTH:
            return
        for found, inside in self._objects(schema, refs, 0):
            properties, required = found.get("properties"), _list(found.get("required"))
            for name, given in properties.items() if isinstance(properties, dict) else ():
                yield _field(depth, str(name), given, name in required, self._root)
                if isinstance(given, dict):
                    yield from self.rows(given, depth + 1, inside)

    def _objects(self, schema: Schema, refs: tuple[str, ...], level: int) -> Iterator[tuple[Schema, tuple[str, ...]]]:
        """Answer the objects that a value can be, or can be made of: itself, variants, items."""
        self._left -= 1
        ref = schema.get("$ref")
        if self._left < 0 or level > MAX_DEPTH or ref in refs:
            return
        refs = (*refs, ref) if isinstance(ref, str) else refs
        found = _resolved(schema, self._root)
        if isinstance(found.get("properties"), dict):
            yield found, refs
        for part in [*_variants(found), found.get("items")]:
            if isinstance(part, dict):
                yield from self._objects(part, refs, level + 1)


def _field(depth: int, name: str, given: object, is_required: bool, root: Schema) -> Field:
    found = _resolved(given, root) if isinstance(given, dict) else {}
    about = found.get("description")
    return Field(
        depth=depth,
        name=name[:MAX_TEXT],
        type=type_of(given, root)[:MAX_TEXT],
        is_required=is_required,
        default=_json(found["default"]) if "default" in found else None,
        constraints=tuple(dict.fromkeys(_constraints(found, root))),
        description=about[:MAX_TEXT] if isinstance(about, str) else "",
    )


def _constraints(schema: Schema, root: Schema) -> Iterator[str]:
    for word, said in _BOUNDS.items():
        value = schema.get(word)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            yield said.format(str(value)[:200])
    if schema.get("uniqueItems") is True:
        yield "no item twice"
    more = schema.get("additionalProperties")
    if more is True or (isinstance(more, dict) and "properties" in schema):
        yield "more fields allowed"
    for variant in _variants(schema)[:20]:
        found = _resolved(variant, root) if isinstance(variant, dict) else {}
        yield from _constraints({key: value for key, value in found.items() if key in _BOUNDS}, root)


def _plain(schema: object, root: Schema) -> str:
    """Say the type of a schema without its variants."""
    if not isinstance(schema, dict):
        return "anything" if schema is True else "nothing"
    found = _resolved(schema, root)
    if isinstance(values := found.get("enum"), list):
        return " | ".join(_json(value) for value in values[:40]) + (" | …" if len(values) > 40 else "")
    if "const" in found:
        return _json(found["const"])
    kind = found.get("type")
    if isinstance(kind, list):
        return " | ".join(map(str, kind[:8]))
    if kind == "array":
        return f"list of {_named(found['items'], root)}" if isinstance(found.get("items"), dict) else "list"
    if kind == "object" or (kind is None and isinstance(found.get("properties"), dict)):
        more = found.get("additionalProperties")
        if isinstance(more, dict) and more and "properties" not in found:
            return f"object of {_named(more, root)}"
        return _title(schema, found)
    return str(kind) if isinstance(kind, str) else "anything"


def _named(schema: Schema, root: Schema) -> str:
    """Say the type of what a list holds; of something in something in something, only that it is a list."""
    found = _resolved(schema, root)
    if found.get("type") == "array":
        return "lists"
    if found.get("additionalProperties") and "properties" not in found:
        return "objects"
    return _plain(found if "$ref" not in schema else {**found, "$ref": schema["$ref"]}, root) if found else "anything"


def _title(schema: Schema, found: Schema) -> str:
    ref = schema.get("$ref")
    title = ref.rpartition("/")[2] if isinstance(ref, str) else found.get("title")
    return f"object {title[:80]}" if isinstance(title, str) and title else "object"


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow references; what stands beside one goes before what it refers to."""
    for _ in range(MAX_REFS):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**_at(ref, root), **beside}
    return {key: value for key, value in schema.items() if key != "$ref"}


def _at(ref: str, root: Schema) -> Schema:
    found: Any = root
    for step in ref.removeprefix("#/").split("/") if ref.startswith("#/") else ["\0"]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _variants(schema: Schema) -> list[Any]:
    return [part for word in ("anyOf", "oneOf", "allOf") for part in _list(schema.get(word))]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:MAX_TEXT]
