"""`max_output_tokens` of a request: the turns of its response share them."""

import pytest
from agents import Agent, Usage, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import Team
from conversations.models import Approval, Run
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, working
from tests.support.responses import answer, ask, words

pytestmark = pytest.mark.django_db(transaction=True)


@function_tool
def look(street: str) -> str:
    """Look."""
    return "dry"


@function_tool(needs_approval=True)
def file(street: str) -> str:
    """File."""
    return "filed"


class Limited(ScriptedModel):
    """A scripted model whose answers have so many tokens each, and which keeps the limits that it is given."""

    def __init__(self, *steps, tokens=15):
        super().__init__(steps, default_usage=Usage(1, 3, None, tokens, None, 3 + tokens))
        self.limits = []

    async def stream_response(self, system_instructions, input, model_settings, *more, **named):
        self.limits.append(model_settings.max_tokens)
        async for event in super().stream_response(system_instructions, input, model_settings, *more, **named):
            yield event


def made(*names):
    return [[function_call(name, {"street": "Elm"}, call_id=f"c{at}")] for at, name in enumerate(names)]


def team_of(model):
    return Team(name="test", agents=[Agent(name="Clerk", model=model, tools=[look, file])], entry=["Clerk"])


def limited(model, most):
    with working(team_of(model)):
        response = ask(params={"max_output_tokens": most})
        ended_runs()
    return answer(response)


@pytest.mark.parametrize(("most", "limits"), [(16, [16]), (31, [31, 16]), (45, [45, 30])])
def test_a_turn_gets_what_earlier_ones_left_and_no_turn_begins_without(most, limits):
    model = Limited(*made("look", "look", "look"), [assistant_message("Done.")])

    response = limited(model, most)

    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert model.limits == limits
    assert response["usage"]["output_tokens"] == 15 * len(limits)


def test_a_response_within_its_limit_completes():
    model = Limited(*made("look", "look"), [assistant_message("Done.")])

    response = limited(model, 46)

    assert (response["status"], words(response), model.limits) == ("completed", ["Done."], [46, 31, 16])


def test_the_last_answer_that_takes_what_is_left_is_incomplete():
    model = Limited(*made("look"), [assistant_message("Once upon a")], tokens=16)

    response = limited(model, 32)

    assert (response["status"], words(response), model.limits) == ("incomplete", ["Once upon a"], [32, 16])


@pytest.mark.slow
@pytest.mark.parametrize(("most", "status", "limits"), [(47, "completed", [47, 32, 17]), (32, "incomplete", [32, 17])])
def test_a_run_that_waited_goes_on_with_what_it_had_left(people, most, status, limits):
    model = Limited(*made("look", "file"), [assistant_message("Done.")])
    with working(team_of(model)):
        response = ask(params={"max_output_tokens": most})
        ended_runs()
    decide.decide(people["approver"], Approval.objects.get().id, "approve")
    again = Limited([assistant_message("Done.")])

    with working(team_of(again)):
        ended_runs()

    assert (answer(response)["status"], Run.objects.get().attempt) == (status, 2)
    assert model.limits + again.limits == limits
