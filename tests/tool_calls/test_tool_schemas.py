"""What becomes of a function, or of a schema that a team wrote itself, before a model sees it: case by case, with the
SDK that is locked. What no model could be offered ends the start."""

import asyncio
import copy
import json
from typing import Annotated, Any, Literal

import pytest
from agents import Agent, FunctionTool, RunConfig, RunContextWrapper, Runner, UserError, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from pydantic import BaseModel, Field

from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.tools import description, identity
from tests.support import demo_provider
from tests.support.provider_server import ProviderServer

Schema = dict[str, Any]


async def never(ctx: Any, arguments: str) -> str:
    raise AssertionError


def made_of(schema: Schema, *, strict: bool = True) -> FunctionTool:
    """Make a tool of a schema that a team wrote."""
    return FunctionTool("made", "", schema, never, strict_json_schema=strict)


def called(tool: FunctionTool, arguments: str, *, context: Any = None) -> Any:
    """Have a model call it once in a run, and answer its output."""
    step: Any = function_call(tool.name, arguments, call_id="c1")
    agent = Agent[Any](name="A", model=ScriptedModel([[step], [assistant_message("ok")]]), tools=[tool])
    run = Runner.run(agent, "go", context=context, run_config=RunConfig(tracing_disabled=True))
    (output,) = (item.output for item in asyncio.run(run).new_items if item.type == "tool_call_output_item")
    return output


# What a function's words and annotations come to.


def described(
    a: Annotated[int, "annotated a"],
    b: Annotated[int, "annotated b", Field(description="field b", ge=1)],
    c: Annotated[int, Field(description="field c", le=9)],
    d: int = Field(default=4, description="default d"),
    e: Annotated[int, Field(default=1)] = 2,
) -> int:
    """Do it by the docstring.

    Args:
        a: documented a
    """
    return a


def test_a_docstring_goes_before_annotations_and_an_override_before_all() -> None:
    plain = function_tool(described, strict_mode=False)
    renamed = function_tool(
        described, name_override="other", description_override="Do it by the decorator.", strict_mode=False
    )
    without = function_tool(described, use_docstring_info=False, strict_mode=False)

    words = {name: field.get("description") for name, field in plain.params_json_schema["properties"].items()}
    assert (plain.name, plain.description) == ("described", "Do it by the docstring.")
    assert (renamed.name, renamed.description) == ("other", "Do it by the decorator.")
    assert words == {"a": "documented a", "b": "annotated b", "c": "field c", "d": "default d", "e": None}
    assert without.params_json_schema["properties"]["a"]["description"] == "annotated a"
    assert without.description == ""


def test_constraints_and_defaults_come_from_fields_and_the_signature_goes_first() -> None:
    schema = function_tool(described, strict_mode=False).params_json_schema

    assert (schema["properties"]["b"]["minimum"], schema["properties"]["c"]["maximum"]) == (1, 9)
    assert (schema["properties"]["d"]["default"], schema["properties"]["e"]["default"]) == (4, 2)
    assert schema["required"] == ["a", "b", "c"]


def only_by_place(a: int, b: int, /) -> str:
    return f"{a} {b}"


def only_by_name(*, a: int, b: int = 2) -> str:
    return f"{a} {b}"


def any_number(first: int, *rest: int, last: int = 0) -> str:
    return f"{first} {rest} {last}"


def any_names(first: int, **rest: int) -> str:
    return f"{first} {rest}"


def with_context(ctx: RunContextWrapper[int], a: int) -> str:
    return f"{ctx.context} {a}"


def with_tool_context(ctx: ToolContext[int], a: int) -> str:
    return f"{ctx.tool_name} {ctx.context} {a}"


class Adder:
    """Add."""

    def __call__(self, a: int, b: int) -> str:
        return f"{a + b}"

    def method(self, a: int) -> str:
        return f"method {a}"


SIGNATURES: dict[str, tuple[Any, list[str], str, str]] = {
    "positional only": (only_by_place, ["a", "b"], '{"a":1,"b":2}', "1 2"),
    "keyword only": (only_by_name, ["a", "b"], '{"a":1,"b":3}', "1 3"),
    "a default left out": (only_by_name, ["a", "b"], '{"a":1}', "1 2"),
    "variadic": (any_number, ["first", "rest", "last"], '{"first":1,"rest":[2,3],"last":4}', "1 (2, 3) 4"),
    "context": (with_context, ["a"], '{"a":1}', "7 1"),
    "tool context": (with_tool_context, ["a"], '{"a":1}', "with_tool_context 7 1"),
    "callable object": (Adder(), ["a", "b"], '{"a":1,"b":2}', "3"),
    "bound method": (Adder().method, ["a"], '{"a":1}', "method 1"),
}


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "not strict"])
@pytest.mark.parametrize(("function", "names", "arguments", "output"), SIGNATURES.values(), ids=SIGNATURES)
def test_every_kind_of_parameter_is_in_the_schema_and_reaches_the_function(
    function: Any, names: list[str], arguments: str, output: str, strict: bool
) -> None:
    tool = function_tool(function, strict_mode=strict)

    assert list(tool.params_json_schema["properties"]) == names
    without = [name for name in names if "default" in tool.params_json_schema["properties"][name] or name == "rest"]
    assert tool.params_json_schema.get("required") == (names if strict else [n for n in names if n not in without])
    assert called(tool, arguments, context=7) == output


def test_names_of_ones_own_go_into_an_object_of_their_own() -> None:
    tool = function_tool(any_names, strict_mode=False)

    assert tool.params_json_schema["properties"]["rest"]["additionalProperties"] == {"type": "integer"}
    assert called(tool, '{"first":1,"rest":{"x":2}}') == "1 {'x': 2}"
    assert "error" in called(tool, '{"first":1,"x":2}').lower()


@pytest.mark.parametrize(
    ("function", "injected"),
    [
        (with_context, "RunContextWrapper[int]"),
        (with_tool_context, "ToolContext[int]"),
        (only_by_name, None),
        (Adder(), None),
    ],
)
def test_the_context_is_told_with_the_tool_and_is_never_in_its_schema(function: Any, injected: str | None) -> None:
    tool = function_tool(function)

    facts = description.facts_of(tool, [tool], "read")

    assert facts["injected"] == injected
    assert "ctx" not in tool.params_json_schema["properties"]
    assert "RunContextWrapper" not in identity.schema_of(tool).body
    assert "ToolContext" not in identity.schema_of(tool).body


# What the SDK makes of schemas.


class Inner(BaseModel):
    x: int
    note: str | None = None


class Outer(BaseModel):
    inner: Inner = Field(description="the inner one")
    many: list[Inner]
    either: int | str
    mode: Literal["fast", "slow"] = "fast"


def nested(outer: Outer, plain: Inner) -> str:
    return ""


INNER = {
    "type": "object", "title": "Inner", "required": ["x", "note"], "additionalProperties": False,
    "properties": {
        "x": {"type": "integer", "title": "X"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Note"},
    },
}  # fmt: skip


def test_nested_models_are_closed_and_whole_also_where_a_reference_has_siblings() -> None:
    schema = function_tool(nested).params_json_schema
    outer = schema["$defs"]["Outer"]

    assert schema["$defs"]["Inner"] == INNER
    assert outer["required"] == ["inner", "many", "either", "mode"]
    assert outer["properties"]["inner"] == INNER | {"description": "the inner one"}
    assert outer["properties"]["many"]["items"] == {"$ref": "#/$defs/Inner"}
    assert outer["properties"]["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert outer["properties"]["mode"]["enum"] == ["fast", "slow"]
    assert schema["properties"]["plain"] == {"$ref": "#/$defs/Inner"}


def an_object(**fields: Any) -> Schema:
    return {"type": "object", "properties": fields}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CLOSED = {"additionalProperties": False}

NORMALISED: dict[str, tuple[Schema, Schema]] = {  # a field as it was written → as a model sees it
    "nested": (an_object(a=TEXT), an_object(a=TEXT) | CLOSED | {"required": ["a"]}),
    "oneOf": ({"oneOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}),
    "oneOf beside anyOf": ({"anyOf": [TEXT], "oneOf": [NUMBER]}, {"anyOf": [TEXT, NUMBER]}),
    "oneOf of objects": ({"oneOf": [an_object(a=TEXT)]}, {"anyOf": [an_object(a=TEXT) | CLOSED | {"required": ["a"]}]}),
    "allOf of one": ({"allOf": [TEXT], "description": "d"}, TEXT | {"description": "d"}),
    "allOf of two": ({"allOf": [TEXT, {"minLength": 1}]}, {"allOf": [TEXT, {"minLength": 1}]}),
    "a reference": ({"$ref": "#/$defs/T"}, {"$ref": "#/$defs/T"}),
    "a reference with siblings": (
        {"$ref": "#/$defs/T", "description": "d"},
        TEXT | {"minLength": 2, "description": "d"},
    ),
    "a chained reference with siblings": ({"$ref": "#/$defs/C", "title": "t"}, TEXT | {"minLength": 2, "title": "t"}),
    "allOf of a chained reference": ({"allOf": [{"$ref": "#/$defs/C"}]}, TEXT | {"minLength": 2}),
    "nullable": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "a default of None": ({"anyOf": [TEXT, {"type": "null"}], "default": None}, {"anyOf": [TEXT, {"type": "null"}]}),
    "another default": ({"type": "integer", "default": 3}, {"type": "integer", "default": 3}),
    "a list of objects": (
        {"type": "array", "items": an_object(a=TEXT)},
        {"type": "array", "items": an_object(a=TEXT) | CLOSED | {"required": ["a"]}},
    ),
}


@pytest.mark.parametrize(("written", "seen"), NORMALISED.values(), ids=NORMALISED)
def test_a_written_schema_is_normalised_and_the_writers_own_stays_as_it_was(written: Schema, seen: Schema) -> None:
    mine = an_object(f=written) | {"$defs": {"T": TEXT | {"minLength": 2}, "C": {"$ref": "#/$defs/T"}}}
    before = copy.deepcopy(mine)

    strict, loose = made_of(mine), made_of(mine, strict=False)

    assert strict.params_json_schema["properties"]["f"] == seen
    assert strict.params_json_schema["required"] == ["f"]
    assert loose.params_json_schema == mine == before


def test_an_empty_schema_yields_an_object_of_ones_own() -> None:
    mine: Schema = {}
    first, second = made_of(mine), made_of(mine)

    first.params_json_schema["properties"]["x"] = TEXT

    assert second.params_json_schema == {"type": "object", "properties": {}, "required": []} | CLOSED
    assert mine == {}


OPEN: dict[str, Schema] = {
    "at the root": {"type": "object", "properties": {}, "additionalProperties": True},
    "with a schema": {"type": "object", "properties": {}, "additionalProperties": TEXT},
    "with anything": {"type": "object", "properties": {}, "additionalProperties": {}},
    "in a field": an_object(f={"type": "object", "additionalProperties": True}),
    "in a list": an_object(f={"type": "array", "items": {"type": "object", "additionalProperties": True}}),
    "in a definition": an_object(f=TEXT) | {"$defs": {"D": {"type": "object", "additionalProperties": True}}},
    "without a type": an_object(f={"additionalProperties": True}),
}


@pytest.mark.parametrize("schema", OPEN.values(), ids=OPEN)
def test_additional_properties_are_refused_where_a_schema_is_strict(schema: Schema) -> None:
    with pytest.raises(UserError, match="additionalProperties"):
        made_of(schema)

    assert made_of(schema, strict=False).params_json_schema == schema


# What models are sent.


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "not strict"])
def test_a_model_is_offered_the_same_streaming_or_not(strict: bool) -> None:
    tool = function_tool(nested, strict_mode=strict)
    model = ScriptedModel([[assistant_message("a")], [assistant_message("b")]])
    agent = Agent[Any](name="A", model=model, tools=[tool])
    config = RunConfig(tracing_disabled=True)

    async def both() -> None:
        await Runner.run(agent, "go", run_config=config)
        async for _ in Runner.run_streamed(agent, "go", run_config=config).stream_events():
            pass

    asyncio.run(both())

    assert [call.streamed for call in model.calls] == [False, True]
    whole, streamed = (identity.schema_of(call.tools[0]) for call in model.calls)
    assert whole == streamed == identity.schema_of(tool)
    assert json.loads(whole.body)["strict"] is strict


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "not strict"])
def test_responses_and_chat_completions_are_given_the_same_schema(strict: bool) -> None:
    tool = function_tool(nested, strict_mode=strict)

    async def ask() -> list[Schema]:
        async with ProviderServer(demo_provider.answer) as server:
            provider = Provider(ModelConfig(api_key="sk-test-0123456789abcdefghij", base_url=server.url))
            for name in ("responses:m", "chat:m"):
                agent = Agent[Any](name="A", model=name, tools=[tool], output_type=list[Inner])
                result = Runner.run_streamed(agent, "hello", run_config=RunConfig(model_provider=provider))
                async for _ in result.stream_events():
                    pass
            await provider.aclose()
            return [request.body for request in server.requests]

    responses, chat = asyncio.run(ask())

    (first,), (other,) = responses["tools"], chat["tools"]
    assert (first["parameters"], first["strict"]) == (other["function"]["parameters"], other["function"]["strict"])
    assert (first["parameters"], first["strict"]) == (tool.params_json_schema, strict)
    form, chat_form = responses["text"]["format"], chat["response_format"]["json_schema"]
    assert (form["schema"], form["strict"]) == (chat_form["schema"], chat_form["strict"])
