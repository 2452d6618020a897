"""The demo model as a model: several pieces, whole events, any schema, teams it has never seen."""

import asyncio
import json
from datetime import date
from enum import Enum
from typing import Any, Literal

import pytest
from agents import Agent, ModelSettings, ModelTracing, RunConfig, Runner, function_tool
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from agents_app.demo import json_filling, sentences, text_rules
from agents_app.demo.decisions import MAX_STEPS, DemoCall, DemoOffer, Say, decide
from agents_app.demo.model import DemoModel
from agents_app.model_providers.providers import ModelConfig, Provider

CONFIG = RunConfig(model_provider=Provider(ModelConfig(demo_pace_s=0)))


def events_of(text: str, agent: Agent[Any]) -> list[Any]:
    async def stream() -> list[Any]:
        result = Runner.run_streamed(agent, text, run_config=CONFIG)
        return [event.data async for event in result.stream_events() if event.type == "raw_response_event"]

    return asyncio.run(stream())


def test_an_answer_comes_in_several_pieces_that_make_it_whole() -> None:
    events = events_of("hello there", Agent(name="A"))

    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]

    assert len(pieces) > 5
    assert "".join(pieces) == events[-1].response.output[0].content[0].text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert events[-1].response.usage.total_tokens > 0


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.text(max_size=400))
def test_pieces_are_the_text_whatever_it_is(text: str) -> None:
    from agents_app.demo.model import PIECES, _pieces

    pieces = _pieces(text)

    assert "".join(pieces) == text
    assert len(pieces) <= PIECES


def test_the_same_conversation_gives_the_same_answer_whole_or_streamed() -> None:
    async def whole() -> Any:
        return (await Runner.run(Agent(name="A"), "A long story. " * 50, run_config=CONFIG)).final_output

    streamed = events_of("A long story. " * 50, Agent(name="A"))[-1].response.output[0].content[0].text

    assert asyncio.run(whole()) == streamed


def test_a_team_it_does_not_know_has_its_tools_called_by_name() -> None:
    called = []

    @function_tool
    def forecast(city: str, days: int) -> str:
        called.append((city, days))
        return "sunny"

    result = asyncio.run(
        Runner.run(Agent(name="Weather", tools=[forecast]), "A forecast for Lyon, 3 days please", run_config=CONFIG)
    )

    assert called == [("Lyon", 3)]
    assert result.final_output == "forecast answered: sunny"


def test_a_team_it_does_not_know_has_its_agents_reached_by_name() -> None:
    front, billing = Agent[Any](name="Front"), Agent[Any](name="Billing", tools=[])
    front.handoffs = [billing]
    billing.handoffs = [front]

    result = asyncio.run(Runner.run(front, "a billing question", run_config=CONFIG))

    assert result.last_agent is billing


def test_it_calls_nothing_where_a_request_wants_no_call() -> None:
    @function_tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return "rain"

    offer = DemoOffer([{"role": "user", "content": "How is the weather in Oslo?"}], [weather], [])

    assert isinstance(decide(offer), DemoCall)
    assert isinstance(decide(offer._replace(choice="none")), Say)


@pytest.mark.parametrize("choice", ["required", "weather"])
def test_it_calls_what_a_request_requires(choice: str) -> None:
    @function_tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return "rain"

    offer = DemoOffer([{"role": "user", "content": "Hello."}], [weather], [])

    assert isinstance(decide(offer), Say)
    step = decide(offer._replace(choice=choice))
    assert isinstance(step, DemoCall)
    assert step.name == "weather"


def test_it_answers_after_a_bounded_number_of_handovers() -> None:
    first, second = Agent[Any](name="Dialogue A"), Agent[Any](name="Dialogue B")
    first.handoffs, second.handoffs = [second], [first]

    result = asyncio.run(Runner.run(first, "hello there", run_config=CONFIG, max_turns=MAX_STEPS + 2))

    assert result.final_output
    assert len([item for item in result.new_items if item.type == "handoff_call_item"]) == MAX_STEPS


@pytest.mark.parametrize(
    ("output", "is_filed"),
    [('{"kind": "water"}', True), ("Error: no such street", False), pytest.param("[" * 100_000, False, id="nested")],
)
def test_nothing_is_filed_when_the_report_could_not_be_made(output: str, is_filed: bool) -> None:
    @function_tool
    def file_incident(kind: str) -> str:
        return kind

    items = [
        {"role": "user", "content": "A burst pipe at 12 Mill Street"},
        {"type": "function_call", "call_id": "c1", "name": "incident_formatter_tool", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": output},
    ]

    step = decide(DemoOffer(items, [file_incident], []))

    assert (isinstance(step, DemoCall) and step.name == "file_incident") is is_filed


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    when: date
    place: str | None


class Everything(BaseModel):
    colour: Colour
    mood: Literal["good", "bad"]
    count: int = Field(ge=2, le=5)
    ratio: float
    is_open: bool
    names: list[str]
    inner: Inner
    maybe: Inner | None
    short: str = Field(max_length=3)
    fixed: Literal["x"]


@pytest.mark.parametrize("kind", [Everything, int, list[int], dict[str, Any] | None, Literal["a", "b"], Colour])
@pytest.mark.parametrize("text", ["a blue one, 99 of them, in Lyon", "", "x" * 5000, '{"colour": "green"}'])
def test_a_structured_answer_fits_its_schema(kind: Any, text: str) -> None:
    if kind == (dict[str, Any] | None):
        schema = TypeAdapter(kind).json_schema()
        assert json_filling.fill(schema, text_rules.read(text), {}) == {}
        return

    result = asyncio.run(Runner.run(Agent(name="A", output_type=kind), text, run_config=CONFIG))

    assert TypeAdapter(kind).validate_python(result.final_output) == result.final_output


def test_values_are_taken_from_what_was_written() -> None:
    result = asyncio.run(Runner.run(Agent(name="A", output_type=Everything), "9 blue ones", run_config=CONFIG))

    assert (result.final_output.colour, result.final_output.count) == (Colour.BLUE, 5)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a pothole on Mill Road 5", "Mill Road 5"),
        ("broken light at 12 Elm Street, since Monday", "12 Elm Street"),
        ("Schlagloch in der Hauptstraße 12", "Hauptstraße 12"),
        ("rue de la Gare, un lampadaire", "rue de la Gare"),
        ("a leak behind the old school", "behind the old school"),
        ("corner of Oak and Pine, a crash", "corner of Oak and Pine"),
        ("lights out at corner of Oak Street and Pine Avenue", "corner of Oak Street and Pine Avenue"),
        ("report: pothole, 5th and Main", "5th and Main"),
        ("it happened on Monday in March", ""),
        ("my tooth hurts", ""),
    ],
)
def test_places_are_found(text: str, place: str) -> None:
    assert text_rules.place_of(text) == place


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("A water pipe burst on Mill Lane 3 and somebody was hurt.", "water"),
        ("The pipes have burst at Mill Lane 3", "water"),
        ("The lamps are out on Mill Lane", "street light"),
        ("Two lamps on the footpath are dark", "street light"),
        ("I took my lamp to Mill Lane", ""),
    ],
)
def test_kinds_are_found_however_they_are_put(text: str, kind: str) -> None:
    assert text_rules.read(text).kind == kind


def test_reading_is_bounded_whatever_is_written() -> None:
    async def read_all() -> None:
        async with asyncio.timeout(60):
            for text in ("A " * 100_000, "a" * 100_000, "near the " * 50_000, "1 Street " * 50_000, "-" * 100_000):
                await DemoModel().get_response(None, text, ModelSettings(), [], None, [], ModelTracing.DISABLED)
                await asyncio.sleep(0)

    asyncio.run(read_all())
    assert json.dumps(text_rules.read("\ud800" * 10)._asdict())


def test_what_a_person_edited_is_told_in_one_sentence() -> None:
    change = {"ran_with": {"description": "Elm Street 14."}, "instead_of": {"description": "The road is flooded."}}

    words = sentences._changed(change)

    assert words == " A person changed this before it ran: description Elm Street 14 instead of The road is flooded."
