"""What the SDK takes as a tool and no model could be offered, or no run could call, ends the start with its reason."""

from typing import Any

import pytest
from agents import Agent, FunctionTool, RunContextWrapper, function_tool

from agents_app.teams import checks, loading
from agents_app.teams.definition import Team, TeamError
from tests.tool_calls.test_tool_schemas import TEXT, Adder, Schema, an_object, made_of, never

UNSEEN: dict[str, Schema] = {  # where the SDK does not look
    "prefixItems": {"type": "array", "prefixItems": [{"type": "object", "additionalProperties": True}]},
    "not": {"not": {"type": "object", "additionalProperties": True}},
    "if": {"if": {"type": "object", "additionalProperties": {}}},
    "patternProperties": {
        "type": "object",
        "patternProperties": {"^a": {"type": "object", "additionalProperties": True}},
    },
}


def refusal(*tools: FunctionTool, **of_agent: Any) -> str:
    with pytest.raises(TeamError) as refused:
        checks.check(Team(name="T", agents=[Agent[Any](name="A", tools=list(tools), **of_agent)], entry=["A"]))
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("field", UNSEEN.values(), ids=UNSEEN)
def test_an_open_object_that_the_sdk_does_not_see_ends_the_start(field: Schema) -> None:
    assert "'A': the tool 'made' is strict but accepts any value in $.f" in refusal(made_of(an_object(f=field)))


def test_a_field_that_is_called_like_the_keyword_is_no_open_object() -> None:
    tool = made_of(
        an_object(additionalProperties=TEXT, f={"type": "string", "default": {"additionalProperties": True}})
    )

    checks.check(Team(name="T", agents=[Agent[Any](name="A", tools=[tool])], entry=["A"]))


def generated() -> Any:
    yield 1


async def generated_later() -> Any:
    yield 1


def with_hidden_context(a: int, rest: list[RunContextWrapper[int] | int] | None = None) -> str:
    return ""


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (function_tool(with_hidden_context, strict_mode=False), "must take its context as the first parameter"),
        (function_tool(generated), "'generated' is a generator"),
        (function_tool(generated_later), "'generated_later' is a generator"),
        (function_tool(Adder, name_override="adder"), "'adder' is the class Adder"),
        (made_of({"type": "array", "items": TEXT}, strict=False), "'made' must take an object; got 'array'"),
        (FunctionTool(" ", "", {}, never), "must have a name that is not blank"),
        (FunctionTool("a\nb", "", {}, never), "must have a name that is not blank"),
        (FunctionTool("a" * 201, "", {}, never), "must have a name of at most 200 characters; got 201"),
    ],
)
def test_what_the_sdk_takes_and_nobody_can_call_ends_the_start(tool: FunctionTool, reason: str) -> None:
    assert reason in refusal(tool)


SOURCES = {
    "context not first": ("def f(a: int, ctx: RunContextWrapper[None]): ...", "found at non-first position"),
    "variadic names, strict": ("def f(**more: int): ...", "cannot use a strict schema"),
    "any object, strict": ("def f(a: dict[str, int]): ...", "additionalProperties should not be set"),
    "an open model, strict": (
        "class M(BaseModel):\n    model_config = {'extra': 'allow'}\ndef f(a: M): ...",
        "additionalProperties should not be set",
    ),
    "a fixed tuple of arguments": ("def f(*a: tuple[int, str]): ...", "fixed-length tuple"),
    "a leading underscore": ("def f(_a: int): ...", "leading underscore"),
    "a parameter called model_config": ("def f(model_config: int): ...", "TypeError: "),
    "a partial": ("f = partial(lambda a: a, 1)", "does not infer functools.partial"),
    "a wrapped object": ("class C:\n    def __call__(self): ...\nf = C()\nf.__wrapped__ = f", "callable wrapper"),
    "a generic object": (
        "T = TypeVar('T')\nclass C(Generic[T]):\n    def __call__(self, a: T): ...\nf = C()",
        "generic callable object",
    ),
    "a type that has no schema": ("class C: ...\ndef f(a: C): ...", "Unable to generate pydantic-core schema"),
    "a time limit on what blocks": ("f = function_tool(timeout=1)(lambda: 1)", "only supported for async"),
}
IMPORTS = (
    "from functools import partial\nfrom typing import Generic, TypeVar\nfrom pydantic import BaseModel\n"
    "from agents import RunContextWrapper, function_tool\n"
)


@pytest.mark.parametrize(("source", "reason"), SOURCES.values(), ids=SOURCES)
def test_an_unsupported_callable_ends_the_start_with_its_reason(
    source: str, reason: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"unsupported_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(f"{IMPORTS}{source}\nTOOL = function_tool(f)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(TeamError) as refused:
        loading.load(name)

    assert reason in str(refused.value)
    assert str(refused.value).startswith(f"team {name!r}: ")
    assert "\n" not in str(refused.value)
