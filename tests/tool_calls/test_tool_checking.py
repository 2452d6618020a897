"""Values held against schemas that a stranger wrote: always an answer, and soon."""

import random
import socket
import time

import pytest
from agents.function_schema import function_schema
from pydantic import BaseModel, ConfigDict

from conversations.core.errors import Invalid
from conversations.tool_calls.schemas import argument_check, argument_form, argument_report
from conversations.tool_calls.schemas.validation import MAX_SEARCHED, PATIENCE, UncheckableSchema, problems, searcher

MIXED = "".join(random.Random(1).choices("ab", k=MAX_SEARCHED))
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
    "more states than are held": ({"a": MIXED}, of(a={"pattern": "(a|b)*a(a|b){200}c"})),
    "patterns without number": (
        {"a": MIXED}, {"allOf": [of(a={"pattern": f"(a|b)*a(a|b){{200}}c{n}"}) for n in range(1_000)]},
    ),
    "a pattern that grows": ({"a": "a" * 40}, of(a={"pattern": "(((a{1,99}){1,99}){1,99}){1,99}"})),
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
    except UncheckableSchema as error:
        assert "too long" in str(error)  # noqa: PT017  # some are passed over, others given up

    assert time.thread_time() - began < PATIENCE + 1


@pytest.mark.parametrize(("value", "schema"), BROKEN.values(), ids=BROKEN)
def test_a_schema_that_is_none_is_said(value, schema):
    assert len(argument_report.fit_of(value, schema)) < 3
    assert len(argument_form.entries(schema, value)) < 2
    with pytest.raises(Invalid, match="schema cannot be used"):
        argument_check.check(value, schema)


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("^[A-Z]{2}-[0-9]+$", "x"),
        ("^(a{3})+$", "aaaa"),
        ("b", "a"),
        (r"^\d{4}-\d\d-\d\d(T.*)?$", "22-1-1"),
        (r"^\d+$", "٣"),  # digits are ASCII, as ECMA 262 has it
        (r"^\p{L}+$", "a1"),
        ("^(a+)+$", A),
        ("a*a*a*c", "a" * MAX_SEARCHED),
    ],
)
def test_a_pattern_is_held_against_the_text(pattern, wrong):
    assert [error.validator for error in problems({"a": wrong}, of(a={"pattern": pattern}))] == ["pattern"]


@pytest.mark.parametrize(
    "pattern",
    ["(", "a{99999999999999999999}", "(" * 5000, "(a)\\1*", "^(?=b)", r"\p{L}{99}", "a" * 3000],
)
def test_what_cannot_be_searched_in_linear_time_is_passed_over(pattern):
    schema = {"patternProperties": {pattern: {"type": "string"}}, "additionalProperties": False}

    assert searcher(pattern) is None
    assert problems({"a": A}, of(a={"pattern": pattern})) == []
    assert problems({"a": 1}, schema) == []


def test_a_text_too_long_to_search_is_passed_over():
    text = "a" * (MAX_SEARCHED + 1)

    assert problems({"a": text}, of(a={"pattern": "b"})) == []
    assert problems({text: 1}, {"patternProperties": {"b": {}}, "additionalProperties": False}) == []


def test_names_that_no_pattern_knows_are_told():
    schema = {"patternProperties": {"^x-": {"type": "string"}, "^y-": {}}, "additionalProperties": False}

    (two,) = problems({"b": 1, "a": 2, "x-c": "", "y-d": 3}, schema)
    (typed,) = problems({"a": 2, "x-c": ""}, schema | {"additionalProperties": {"type": "string"}})

    assert two.message == "'a', 'b' do not match any of the regexes: '^x-', '^y-'"
    assert (list(typed.absolute_path), typed.message) == (["a"], "2 is not of type 'string'")


class Place(BaseModel):
    street: str = ""


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")


def file(place: Place, places: list[Place], either: Place | None, prices: dict[str, int], free: Free) -> None: ...


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ({"plaice": {}}, ["plaice"]),
        ({"place": {"street": "Elm"}, "places": [{"street": "Elm"}], "either": {}, "prices": {"a": 1}}, []),
        ({"place": {"steet": "Elm"}}, ["place", "steet"]),
        ({"places": [{}, {"steet": "Elm"}]}, ["places", 1, "steet"]),
        ({"free": {"any": 1}}, []),
    ],
)
def test_names_that_a_functions_schema_does_not_have_are_told(value, unknown):
    schema = function_schema(file, strict_json_schema=False).params_json_schema | {"required": []}

    assert problems(value, schema) == []
    assert [list(error.absolute_path) for error in problems(value, schema, is_closed=True)] == [unknown] * bool(unknown)


def test_names_of_an_object_that_is_described_in_several_places_are_not_told():
    schema = {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}, {"properties": {"c": {}}}]}

    assert problems({"a": 1, "b": 2}, schema, is_closed=True) == []


def test_a_reference_opens_no_connection_and_no_file(tmp_path):
    (tmp_path / "text.json").write_text('{"type": "string"}')
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        for address in (f"http://127.0.0.1:{server.getsockname()[1]}/text.json", (tmp_path / "text.json").as_uri()):
            with pytest.raises(UncheckableSchema, match="Unresolvable"):
                problems({"a": 1}, of(a={"$ref": address}))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_other_rules_of_a_schema_hold():
    schema = of(a={"type": "integer"}) | {
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }

    problems_read = problems({"a": "1", "x-b": 2, "c": 3}, schema)

    assert {error.validator for error in problems_read} == {"type", "additionalProperties"}
    assert len(problems_read) == 3
    assert [e.message for e in problems({"a": [1, 1]}, of(a={"uniqueItems": True}))] == ["items must be unique"]


@pytest.mark.parametrize("given", ["[" * 100_000, '{"a":' * 100_000])
def test_a_field_of_json_that_is_too_deep_is_no_json(given):
    with pytest.raises(Invalid, match="must be JSON"):
        argument_form.read(of(a={"type": "array"}), {"arg.a": given}, {})


@pytest.mark.parametrize(
    ("text", "why"), [('{"a": "\\ud800"}', "must not contain lone surrogates"), ('{"a": 1e999}', "too large")]
)
def test_arguments_that_the_record_cannot_hold_are_refused(text, why):
    with pytest.raises(Invalid, match=why):
        argument_check.read(text, "unknown")
