"""Calls whose arguments are larger than an event shows wait, are decided and run like any other."""

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import Team
from conversations.models import Approval, ToolCall
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)
SIZES = (280_000, 700_000)  # characters: larger than an event shows of a value, larger than an event


class Desk:
    """A team whose tool takes one text; each `team()` is the same team as another process would make it."""

    def __init__(self, *, waits: bool) -> None:
        self.sizes: list[int] = []
        self.waits = waits

    def team(self, *steps):
        def file(text: str) -> str:
            """File it."""
            self.sizes.append(len(text))
            return "filed"

        tool = function_tool(file, needs_approval=self.waits)
        clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[tool])
        return Team(name="desk", agents=[clerk], entry=["Clerk"])


def ask(size):
    return [function_call("file", {"text": "street " * (size // 7)}, call_id="c1")]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_call_runs_with_all_of_its_arguments(size):
    desk = Desk(waits=False)
    with working(desk.team(ask(size), [assistant_message("Filed.")])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, desk.sizes) == ("done", [size])
    assert list(ToolCall.objects.values_list("call_id", "status")) == [("c1", "done")]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_decided_call_is_the_one_that_was_asked_about(people, decision, size):
    desk = Desk(waits=True)
    with working(desk.team(ask(size))):
        send_message()
        ended_runs()
    decide.decide(people["approver"], Approval.objects.get().id, decision, message="no" if decision == "reject" else "")
    with working(desk.team([assistant_message("Done.")])):
        (run,) = ended_runs()

    assert (run.status, event_bodies("run.incompatible")) == ("done", [])
    assert desk.sizes == ([size] if decision == "approve" else [])
    assert list(ToolCall.objects.values_list("call_id", "status")) == [
        ("c1", "done" if decision == "approve" else "rejected")
    ]
