"""Models whose call ids are long: what a response gives out comes back, from a client, a front end or a person."""

import pytest
from ag_ui.core import RunAgentInput, ToolMessage
from agents.testing import assistant_message, function_call

from conversations.asgi.agui import front_end_input
from conversations.asgi.agui.front_end_input import FrontEndInput
from conversations.asgi.responses import parse_request
from conversations.models import Response, ToolCall
from conversations.runs.responses import create, manual_output
from tests.support.agents_running import ended_runs, team, working
from tests.support.responses import answer, ask, calls, function, returned, words

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
lengths = pytest.mark.parametrize("length", [85, 399, 400, 401, 5_000])


def calling(length):
    """A team whose model calls the client's tool under an id of that length."""
    return team([function_call("weather", {}, call_id="call_".ljust(length, "z"))], [assistant_message("Rain.")])


def first_call():
    response = ask("Weather?", tools=[function("weather")])
    ended_runs()
    (call,) = calls(answer(response))
    return response, call


@lengths
def test_the_output_of_a_call_with_a_long_id_is_taken_back(length):
    with working(calling(length)):
        response, call = first_call()
        body = {"model": "Clerk", "input": [returned(call, "rain")], "previous_response_id": response}
        request = parse_request.parse_body(body)
        create._check_outputs(request, "")
        second = ask(request.input, previous=response)
        ended_runs(2)

    assert (len(call["call_id"]), words(answer(second))) == (length, ["Rain."])
    assert ToolCall.objects.get().status == "done"


@lengths
def test_a_front_ends_answer_names_the_call_as_the_model_did(length):
    with working(calling(length)):
        response, call = first_call()
    message = ToolMessage(id="t1", tool_call_id=ToolCall.objects.get().id, content="rain")
    whole = RunAgentInput(thread_id=response, run_id="r2", messages=[message], tools=[], context=[])

    request = front_end_input.request_of("Clerk", FrontEndInput(response, "r2", [], whole))

    assert request.input[0]["call_id"] == call["call_id"]


@lengths
def test_an_output_that_a_person_supplies_reaches_the_model(people, length):
    with working(calling(length)):
        first_call()
        second = manual_output.answer_call(people["operator"], ToolCall.objects.get().id, "rain")
        ended_runs(2)

    assert Response.objects.get(id=second).status == "completed"
    assert words(answer(second)) == ["Rain."]
