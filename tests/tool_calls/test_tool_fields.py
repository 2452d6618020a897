"""A JSON schema as rows of a table, and two of them compared: whatever it is, in bounds."""

from typing import Any

import pytest

from conversations.core import json_diff
from conversations.tool_calls.schemas import schema_table

TEXT = {"type": "string"}
PLACE = {"type": "object", "properties": {"street": TEXT, "inner": {"$ref": "#/$defs/Place"}}, "required": ["street"]}
DEFS = {"Place": PLACE, "Same": {"$ref": "#/$defs/Place"}, "Loop": {"$ref": "#/$defs/Loop"}}

TYPES: dict[str, tuple[Any, str]] = {
    "text": (TEXT, "string"),
    "nullable": ({"anyOf": [TEXT, {"type": "null"}]}, "string | null"),
    "types": ({"type": ["string", "null"]}, "string | null"),
    "one of": ({"oneOf": [TEXT, {"type": "integer"}]}, "string | integer"),
    "all of": ({"allOf": [TEXT, {"$ref": "#/$defs/Place"}]}, "string & object Place"),
    "choice": ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
    "constant": ({"const": "a"}, '"a"'),
    "list": ({"type": "array", "items": TEXT}, "list of string"),
    "list of anything": ({"type": "array"}, "list"),
    "list of lists": ({"type": "array", "items": {"type": "array", "items": TEXT}}, "list of lists"),
    "map": ({"type": "object", "additionalProperties": TEXT}, "object of string"),
    "reference": ({"$ref": "#/$defs/Place"}, "object Place"),
    "chained reference": ({"$ref": "#/$defs/Same"}, "object Same"),
    "reference to itself": ({"$ref": "#/$defs/Loop"}, "anything"),
    "reference to nothing": ({"$ref": "#/$defs/None"}, "anything"),
    "reference elsewhere": ({"$ref": "https://example.org/x"}, "anything"),
    "anything": ({}, "anything"),
    "true": (True, "anything"),
    "false": (False, "nothing"),
    "no schema": (7, "nothing"),
}


@pytest.mark.parametrize(("schema", "words"), TYPES.values(), ids=TYPES)
def test_a_type_is_said_in_few_words(schema: Any, words: str) -> None:
    (row,), _ = schema_table.fields_of({"properties": {"f": schema}, "$defs": DEFS | {"Place": {"type": "object"}}})

    assert schema_table.type_of(schema, {"$defs": DEFS}) == row.type == words


def test_fields_inside_are_rows_below_and_a_cycle_ends() -> None:
    schema = {"properties": {"at": {"$ref": "#/$defs/Place"}}, "required": ["at"], "$defs": DEFS}

    rows, is_cut = schema_table.fields_of(schema)

    assert [(row.depth, row.name, row.is_required) for row in rows] == [
        (0, "at", True),
        (1, "street", True),
        (1, "inner", False),
    ]
    assert not is_cut


def test_references_that_fan_out_without_end_cost_little() -> None:
    each = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 20} for n in range(20)}

    rows, is_cut = schema_table.fields_of({"properties": {"f": {"$ref": "#/$defs/D0"}}, "$defs": each})

    assert [row.name for row in rows] == ["f"]
    assert not is_cut


def test_more_fields_than_are_listed_are_told() -> None:
    rows, is_cut = schema_table.fields_of({"properties": {f"f{n}": TEXT for n in range(500)}})

    assert (len(rows), is_cut) == (schema_table.MAX_ROWS, True)


@pytest.mark.parametrize(
    "schema", [None, [], 7, "x", {"properties": 7}, {"properties": {"f": {"anyOf": 7, "enum": 7}}}]
)
def test_what_is_no_schema_has_no_rows_or_plain_ones(schema: Any) -> None:
    rows, _ = schema_table.fields_of(schema)

    assert [row.type for row in rows] in ([], ["anything"])


def change(before: Any, after: Any) -> list[tuple[str, str | None, str | None]]:
    diff = json_diff.schema_diff(before, after)
    assert not diff.is_cut
    return [
        (change.path, *(side and side[0].text for side in (change.before, change.after))) for change in diff.changes
    ]


def test_a_difference_is_told_at_its_path() -> None:
    before = {"a": 1, "b": {"c": "x", "d": [1, 2]}, "e": [{"f": 1}], "same": [1]}
    after = {"b": {"c": "y", "d": [2, 3]}, "e": [{"f": 1}, {"f": 2}], "g": None, "same": [1]}

    assert change(before, after) == [
        ("a", "1", None),
        ("b.c", '"x"', '"y"'),
        ("b.d[]", "1", None),
        ("b.d[]", None, "3"),
        ("e[1]", None, '{"f": 2}'),
        ("g", None, "null"),
    ]


def test_order_of_keys_and_of_names_is_no_difference_and_types_are() -> None:
    assert change({"a": 1, "b": ["x", "y"]}, {"b": ["y", "x"], "a": 1}) == []
    assert change({"a": 1}, {"a": True}) == [("a", "1", "true")]
    assert change({"a": 1}, {"a": 1.0}) == [("a", "1", "1.0")]


def test_differences_are_bounded() -> None:
    diff = json_diff.schema_diff({}, {str(n): "x" * 2_000 for n in range(1_000)})

    assert (len(diff.changes), diff.is_cut) == (json_diff.MAX_DIFFERENCES, True)
    assert len(diff.changes[0].after[0].text) <= json_diff.TEXT + 1
