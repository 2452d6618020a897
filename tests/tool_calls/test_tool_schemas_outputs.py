"""What agents answer with: text, objects, wrapped values, generics; an answer that does not fit ends its run, with its
place."""

import json
from typing import Any, Generic, Literal, Optional, TypeVar, Union

import pytest
from agents import Agent, AgentOutputSchema, ModelBehaviorError
from agents.testing import ScriptedModel, assistant_message
from pydantic import BaseModel
from typing_extensions import TypedDict

from agents_app.teams import checks
from agents_app.teams.definition import Team, TeamError
from agents_app.tools import output_types
from conversations.events import log
from conversations.models import Run
from dashboard.pages.conversation_entries import entries_of
from tests.support.agents_running import ended_runs, event_bodies, send_message, working

T = TypeVar("T")


class Item(BaseModel):
    name: str
    price: float


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: int | None = None


class Typed(TypedDict):
    a: int


class Open(BaseModel):
    model_config = {"extra": "allow"}


OUTPUTS: dict[str, tuple[Any, str, bool]] = {  # a type → its name, whether it is wrapped
    "nothing said": (None, "str", False),
    "text": (str, "str", False),
    "object": (Item, "Item", False),
    "generic": (Page[Item], "Page[Item]", False),
    "nested generic": (Page[Page[Item]], "Page[Page[Item]]", False),
    "typed dict": (Typed, "Typed", False),
    "scalar": (int, "int", True),
    "truth": (bool, "bool", True),
    "list": (list[Item], "list[Item]", True),
    "nested list": (list[list[Page[Item]]], "list[list[Page[Item]]]", True),
    "union": (Item | int, "Item | int", True),
    "optional": (int | None, "int | None", True),
    "union of generics": (Union[Page[Item], list[int]], "Page[Item] | list[int]", True),  # noqa: UP007
    "literal": (Literal["a", "b", 1], "Literal['a', 'b', 1]", True),
    "list of literals": (list[Literal["a"]], "list[Literal['a']]", True),
}


@pytest.mark.parametrize(("kind", "name", "wrapped"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_is_named_and_wrapped_as_its_type_says(kind: Any, name: str, wrapped: bool) -> None:
    output = output_types.output_of(Agent[Any](name="A", output_type=kind))
    again = output_types.output_of(Agent[Any](name="B", output_type=kind))

    assert (output.type, output.is_wrapped) == (name, wrapped)
    assert output == again
    assert (output.schema is None) is (name == "str")
    if wrapped:
        assert output.schema is not None
        assert list(output.schema["properties"]) == ["response"]


def test_one_type_has_one_name_however_it_is_written() -> None:
    ways = [Optional[int], Union[int, None], int | None]  # noqa: UP007, UP045

    assert {output_types.type_name(way) for way in ways} == {"int | None"}


@pytest.mark.parametrize("kind", [dict[str, int], Open, list[Open]], ids=["dict", "open model", "list of open models"])
def test_an_output_that_no_model_can_be_asked_for_strictly_ends_the_start(kind: Any) -> None:
    wrong = Team(name="T", agents=[Agent[Any](name="A", output_type=kind)], entry=["A"])

    with pytest.raises(TeamError, match=r"'A' cannot answer with .*: additionalProperties should not be set"):
        checks.check(wrong)

    loose = AgentOutputSchema(kind, strict_json_schema=False)
    checks.check(Team(name="T", agents=[Agent[Any](name="A", output_type=loose)], entry=["A"]))
    assert output_types.output_of(Agent[Any](name="A", output_type=loose)).is_strict is False


FITTING: dict[str, tuple[Any, str, Any]] = {  # a type, an answer, what it is read as
    "object": (Item, '{"name":"a","price":1.5}', Item(name="a", price=1.5)),
    "scalar": (int, '{"response":5}', 5),
    "nothing": (int | None, '{"response":null}', None),
    "generic": (Page[Item], '{"items":[],"next":2}', Page[Item](items=[], next=2)),
    "list": (list[Item], '{"response":[{"name":"a","price":1}]}', [Item(name="a", price=1.0)]),
    "literal": (Literal["a", "b"], '{"response":"b"}', "b"),
}

UNFIT: dict[str, tuple[Any, str, str]] = {  # a type, an answer, where it does not fit
    "no JSON": (Item, "Here is your item!", "$"),
    "cut JSON": (Item, '{"name":"a","pri', "$"),
    "a field of another type": (Item, '{"name":"a","price":"dear"}', "$.price"),
    "a field left out": (Item, '{"name":"a"}', "$.price"),
    "no wrapper": (int, "5", "$"),
    "another wrapper": (int, '{"answer":5}', "$.response"),
    "deep inside": (Page[Item], '{"items":[{"name":"a","price":1},{"name":2,"price":1}]}', "$.items[1].name"),
    "in a wrapped list": (list[Item], '{"response":[{"name":"a"}]}', "$.response[0].price"),
    "none of the literals": (Literal["a", "b"], '{"response":"c"}', "$.response"),
}


@pytest.mark.parametrize(("kind", "answer", "read"), FITTING.values(), ids=FITTING)
def test_a_fitting_answer_is_unwrapped(kind: Any, answer: str, read: Any) -> None:
    assert AgentOutputSchema(kind).validate_json(answer) == read


@pytest.mark.parametrize(("kind", "answer", "_where"), UNFIT.values(), ids=UNFIT)
def test_an_answer_that_does_not_fit_is_no_answer(kind: Any, answer: str, _where: str) -> None:
    with pytest.raises(ModelBehaviorError):
        AgentOutputSchema(kind).validate_json(answer)


def clerk(name: str, kind: Any, answer: str) -> Agent[Any]:
    """Make an agent of a type that answers so."""
    return Agent[Any](name=name, model=ScriptedModel([[assistant_message(answer)]]), output_type=kind)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_runs_end_with_the_place_where_an_answer_did_not_fit_and_well_where_it_did() -> None:
    agents = [clerk(f"wrong {n}", kind, answer) for n, (kind, answer, _) in enumerate(UNFIT.values())]
    right = [clerk(f"right {n}", kind, answer) for n, (kind, answer, _) in enumerate(FITTING.values())]
    everybody = [*agents, *right]

    with working(Team(name="T", agents=everybody, entry=[agent.name for agent in everybody])):
        for agent in everybody:
            send_message("go", key=agent.name, to=f"agent:{agent.name}")
        ended_runs(len(everybody))

    ends = dict(Run.objects.values_list("agent", "status"))
    assert ends == {a.name: "failed" for a in agents} | {a.name: "done" for a in right}
    for agent, (_, answer, where) in zip(agents, UNFIT.values(), strict=True):
        (failed,), (output,) = event_bodies("run.failed", agent.name), event_bodies("output", agent.name)
        why = failed["place"].pop("why")
        assert failed["place"] == {"turn": 1, "agent": agent.name, "path": where}
        assert why
        assert failed["error"].startswith("ModelBehaviorError: ")
        assert output["text"] == answer  # what the model said stays in the record
    for agent, (_, answer, _) in zip(right, FITTING.values(), strict=True):
        (output,) = event_bodies("output", agent.name)
        assert json.loads(output["text"]) == json.loads(answer)

    deep = agents[list(UNFIT).index("deep inside")].name
    (row,) = [row for row in map(str, entries_of(log.newest_page(deep))) if 'data-kind="run.failed"' in row]
    assert f"in turn 1 of {deep}, at $.items[1].name: Input should be a valid string" in row
