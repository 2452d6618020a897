"""Values held against schemas that a stranger wrote: always an answer, and soon."""

import time

import pytest

from conversations.errors import Invalid
from conversations.tools import arguments, fit, form
from conversations.tools.checking import PATIENCE, Unusable, is_quick, problems

A, BAD = "a" * 40 + "b", "^(a+)+$"
OLD = "http://json-schema.org/draft-07/schema#"
DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)} | {"d30": {"type": "integer"}}


def of(**properties):
    return {"type": "object", "properties": properties}


SLOW = {
    "repeats in a repeat": ({"a": A}, of(a={"pattern": BAD})),
    "a choice in a repeat": ({"a": A}, of(a={"pattern": "^(a|a)*$"})),
    "many repeats": ({"a": "a" * 60_000}, of(a={"pattern": "a*a*a*c"})),
    "one repeat, anywhere": ({"a": "a" * 200_000}, of(a={"pattern": "a*c"})),
    "a pattern of names": ({A: 1}, {"patternProperties": {BAD: {"type": "string"}}, "additionalProperties": False}),
    "in an old standard": ({"a": A}, of(a={"$schema": OLD, "pattern": BAD})),
    "names nobody looked at": (
        {A: 1}, {"allOf": [{"patternProperties": {BAD: {}}}], "unevaluatedProperties": False},
    ),
    "items of many kinds, once": (
        {"a": [[{"n": n}] if n % 2 else n for n in range(9_000)]}, of(a={"uniqueItems": True}),
    ),
    "references that double": ({"a": 1}, of(a={"$ref": "#/$defs/d0"}) | {"$defs": DOUBLING}),
}  # fmt: skip
BROKEN = {
    "no such type": ({"a": "x"}, of(a={"type": "nope"})),
    "a bound that is no number": ({"a": 1}, of(a={"minimum": "x"})),
    "a multiple of nothing": ({"a": 1}, of(a={"multipleOf": 0})),
    "a multiple beyond floats": ({"a": 10**400}, of(a={"multipleOf": 0.1})),
    "a choice of no list": ({"a": 1}, of(a={"enum": 5})),
    "properties of no object": ({"a": 1}, {"type": "object", "properties": 5}),
    "a definition of itself": (
        {"a": 1},
        of(a={"$ref": "#/$defs/X"}) | {"$defs": {"X": {"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]}}},
    ),
}


@pytest.mark.parametrize(("value", "schema"), SLOW.values(), ids=SLOW)
def test_a_schema_that_takes_for_ever_is_given_up(value, schema):
    began = time.thread_time()

    try:
        problems(value, schema)
    except Unusable as error:
        assert "too long" in str(error)  # noqa: PT017  # some are passed over, others given up

    assert time.thread_time() - began < PATIENCE + 1


@pytest.mark.parametrize(("value", "schema"), BROKEN.values(), ids=BROKEN)
def test_a_schema_that_is_none_is_said(value, schema):
    assert len(fit.fit_of(value, schema)) < 3
    assert len(form.entries(schema, value)) < 2
    with pytest.raises(Invalid, match="schema cannot be used"):
        arguments.check(value, schema)


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [("^[A-Z]{2}-[0-9]+$", "x"), ("^(a{3})+$", "aaaa"), ("b", "a"), (r"^\d{4}-\d\d-\d\d(T.*)?$", "22-1-1")],
)
def test_a_plain_pattern_is_kept(pattern, wrong):
    assert [error.validator for error in problems({"a": wrong}, of(a={"pattern": pattern}))] == ["pattern"]


@pytest.mark.parametrize("pattern", ["(", r"\p{L}+", "a{99999999999999999999}", "(" * 5000, "(a)\\1*", "a" * 3000])
def test_what_python_cannot_search_is_passed_over(pattern):
    assert not is_quick(pattern, 40)
    assert problems({"a": A}, of(a={"pattern": pattern})) == []


def test_other_rules_of_a_schema_hold():
    schema = of(a={"type": "integer"}) | {
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }

    found = problems({"a": "1", "x-b": 2, "c": 3}, schema)

    assert {error.validator for error in found} == {"type", "additionalProperties"}
    assert len(found) == 3
    assert [e.message for e in problems({"a": [1, 1]}, of(a={"uniqueItems": True}))] == ["an item is there twice"]


@pytest.mark.parametrize("given", ["[" * 100_000, '{"a":' * 100_000])
def test_a_field_of_json_that_is_too_deep_is_no_json(given):
    with pytest.raises(Invalid, match="expected"):
        form.read(of(a={"type": "array"}), {"arg.a": given})


@pytest.mark.parametrize(("text", "why"), [('{"a": "\\ud800"}', "half a character"), ('{"a": 1e999}', "too large")])
def test_arguments_that_the_record_cannot_hold_are_refused(text, why):
    with pytest.raises(Invalid, match=why):
        arguments.read(text, "unknown")
