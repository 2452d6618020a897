"""A JSON schema as table rows: each field with its type, whether it is required, default, constraints, description."""

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
    """One row. `depth` 0 is an argument; texts are as in the schema, not escaped."""

    depth: int
    name: str
    type: str
    is_required: bool
    default: str | None
    constraints: tuple[str, ...]
    description: str


def fields_of(schema: object) -> tuple[list[Field], bool]:
    """Return the rows of an object schema, and whether further ones were left out."""
    root = schema if isinstance(schema, dict) else {}
    rows = list(islice(_Walk(root).rows(root), MAX_ROWS + 1))
    return rows[:MAX_ROWS], len(rows) > MAX_ROWS


def type_of(schema: object, root: Schema) -> str:
    """Describe a schema's type in a few words."""
    if schema is True or schema == {}:
        return "anything"
    if not isinstance(schema, dict):
        return "nothing"
    resolved = resolve(schema, root)
    for word, joint in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if isinstance(variants := resolved.get(word), list) and variants:
            return joint.join(dict.fromkeys(_plain(variant, root) for variant in variants[:20]))
    return _plain(schema, root)


class _Walk:
    """Walks a schema's objects within a budget: references can fan out endlessly."""

    def __init__(self, root: Schema) -> None:
        self._root, self._nodes_left = root, MAX_NODES

    def rows(self, schema: Schema, depth: int = 0, refs: tuple[str, ...] = ()) -> Iterator[Field]:
        """Yield the fields of an object; `refs` are the definitions the walk is inside, so that cycles end."""
        if depth > MAX_DEPTH:
            return
        for object_schema, inside in self._objects(schema, refs, 0):
            properties, required = object_schema.get("properties"), _list(object_schema.get("required"))
            for name, inner in properties.items() if isinstance(properties, dict) else ():
                yield _field(depth, str(name), inner, name in required, self._root)
                if isinstance(inner, dict):
                    yield from self.rows(inner, depth + 1, inside)

    def _objects(self, schema: Schema, refs: tuple[str, ...], level: int) -> Iterator[tuple[Schema, tuple[str, ...]]]:
        """Yield the objects that a value can be or contain: itself, variants, items."""
        self._nodes_left -= 1
        ref = schema.get("$ref")
        if self._nodes_left < 0 or level > MAX_DEPTH or ref in refs:
            return
        refs = (*refs, ref) if isinstance(ref, str) else refs
        resolved = resolve(schema, self._root)
        if isinstance(resolved.get("properties"), dict):
            yield resolved, refs
        for part in [*_variants(resolved), resolved.get("items")]:
            if isinstance(part, dict):
                yield from self._objects(part, refs, level + 1)


def _field(depth: int, name: str, schema: object, is_required: bool, root: Schema) -> Field:
    resolved = resolve(schema, root)
    about = resolved.get("description")
    return Field(
        depth=depth,
        name=name[:MAX_TEXT],
        type=type_of(schema, root)[:MAX_TEXT],
        is_required=is_required,
        default=_json(resolved["default"]) if "default" in resolved else None,
        constraints=tuple(dict.fromkeys(_constraints(resolved, root))),
        description=about[:MAX_TEXT] if isinstance(about, str) else "",
    )


def _constraints(schema: Schema, root: Schema) -> Iterator[str]:
    for word, template in _BOUNDS.items():
        value = schema.get(word)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            yield template.format(str(value)[:200])
    if schema.get("uniqueItems") is True:
        yield "unique items"
    more = schema.get("additionalProperties")
    if more is True or (isinstance(more, dict) and "properties" in schema):
        yield "additional fields allowed"
    for variant in _variants(schema)[:20]:
        resolved = resolve(variant, root)
        yield from _constraints({key: value for key, value in resolved.items() if key in _BOUNDS}, root)


def _plain(schema: object, root: Schema) -> str:
    """Describe the type of a schema without its variants."""
    if not isinstance(schema, dict):
        return "anything" if schema is True else "nothing"
    resolved = resolve(schema, root)
    if isinstance(values := resolved.get("enum"), list):
        return " | ".join(_json(value) for value in values[:40]) + (" | …" if len(values) > 40 else "")
    if "const" in resolved:
        return _json(resolved["const"])
    kind = resolved.get("type")
    if isinstance(kind, list):
        return " | ".join(map(str, kind[:8]))
    if kind == "array":
        return f"list of {_named(resolved['items'], root)}" if isinstance(resolved.get("items"), dict) else "list"
    if kind == "object" or (kind is None and isinstance(resolved.get("properties"), dict)):
        more = resolved.get("additionalProperties")
        if isinstance(more, dict) and more and "properties" not in resolved:
            return f"object of {_named(more, root)}"
        return _title(schema, resolved)
    return str(kind) if isinstance(kind, str) else "anything"


def _named(schema: Schema, root: Schema) -> str:
    """Describe the type of a list's items; deeply nested ones only as a list."""
    resolved = resolve(schema, root)
    if resolved.get("type") == "array":
        return "lists"
    if resolved.get("additionalProperties") and "properties" not in resolved:
        return "objects"
    return (
        _plain(resolved if "$ref" not in schema else {**resolved, "$ref": schema["$ref"]}, root)
        if resolved
        else "anything"
    )


def _title(schema: Schema, resolved: Schema) -> str:
    ref = schema.get("$ref")
    title = ref.rpartition("/")[2] if isinstance(ref, str) else resolved.get("title")
    return f"object {title[:80]}" if isinstance(title, str) and title else "object"


def resolve(schema: object, root: Schema) -> Schema:
    """Follow references; keywords beside a reference take precedence. Of what is no object nothing is known."""
    if not isinstance(schema, dict):
        return {}
    for _ in range(MAX_REFS):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**_at(ref, root), **beside}
    return {key: value for key, value in schema.items() if key != "$ref"}


def _at(ref: str, root: Schema) -> Schema:
    node: Any = root
    for step in ref.removeprefix("#/").split("/") if ref.startswith("#/") else ["\0"]:
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _variants(schema: Schema) -> list[Any]:
    return [part for word in ("anyOf", "oneOf", "allOf") for part in _list(schema.get(word))]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:MAX_TEXT]
