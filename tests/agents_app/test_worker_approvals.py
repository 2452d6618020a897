"""Calls that wait for a person: asked, decided, gone on with by another worker; and what no longer fits."""

import json

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from django.db.models import F
from pydantic import BaseModel

from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from conversations.models import Approval, Event, Run, ToolCall
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)


class Kept(BaseModel):
    """A context that counts."""

    filed: int = 0


class Office:
    """A team whose `file` waits for approval; each `team()` is the same team as another process would make it."""

    def __init__(self):
        self.filed = []
        self.looked = []

    def team(self, *steps, signature="street: str", tool="file", model=None):
        @function_tool
        def look() -> str:
            """Look."""
            self.looked.append(1)
            return "seen"

        scope = {"filed": self.filed, "RunContextWrapper": object}
        exec(f"def {tool}({signature}) -> str:\n    'File it.'\n    filed.append(1)\n    return 'filed'", scope)
        file = function_tool(scope[tool], needs_approval=True)
        clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[look, file])
        return Team(name="office", agents=[clerk], entry=["Clerk"], context=Kept)


ASK = [function_call("look", {}, call_id="c1"), function_call("file", {"street": "Mill Lane"}, call_id="c2")]
SO = [assistant_message("Done so.")]


def waiting_approval(office):
    with working(office.team(ASK)):
        send_message()
        (run,) = ended_runs()
    assert (run.status, run.reason) == ("waiting", "approval")
    return Approval.objects.get()


def test_a_gated_call_waits_while_its_sibling_is_done_and_the_worker_is_free():
    office = Office()
    waiting_approval(office)

    (request,) = event_bodies("approval.requested")
    assert (request["name"], request["args"], request["tool_call_id"]) == ("file", {"street": "Mill Lane"}, "c2")
    assert len(request["digest"]) == 64
    assert request["why"] == "file requires approval, as set in the team's code"
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "waiting"}
    assert (office.looked, office.filed) == ([1], [])


@pytest.mark.slow
def test_an_approved_call_is_done_once_by_another_worker(people):
    office = Office()
    approval = waiting_approval(office)
    decide.decide(people["approver"], approval.id, "approve")
    with working(office.team(SO)):
        (run,) = ended_runs()

    assert (run.status, run.attempt) == ("done", 2)
    assert (office.looked, office.filed) == ([1], [1])
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "done"}
    assert [turn["turn"] for turn in event_bodies("model.turn")] == [1, 2]
    assert ToolCall.objects.get(call_id="c2").id == event_bodies("approval.requested")[0]["tool_call"]


@pytest.mark.slow
def test_a_run_took_as_long_as_from_its_start_to_its_end_with_its_waits(people):
    office = Office()
    approval = waiting_approval(office)
    Event.objects.filter(kind="run.started").update(at=F("at") - 60_000_000)  # as if it had waited a minute
    decide.decide(people["approver"], approval.id, "approve")
    with working(office.team(SO)):
        ended_runs()

    (done,) = event_bodies("run.done")
    started, ended = (Event.objects.filter(kind=kind).earliest("seq").at for kind in ("run.started", "run.done"))
    assert 60_000 < done["duration_ms"] <= (ended - started) / 1000


@pytest.mark.slow
def test_a_rejected_call_is_never_done_and_the_model_hears_why(people):
    office = Office()
    approval = waiting_approval(office)
    decide.decide(people["approver"], approval.id, "reject", message="The wrong street.")
    team = office.team(SO)
    with working(team):
        (run,) = ended_runs()

    model_input = json.dumps(team.agents[0].model.first_call.input, default=str)
    assert (run.status, office.filed, ToolCall.objects.get(call_id="c2").status) == ("done", [], "rejected")
    assert "The wrong street." in model_input


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"signature": "street: str, house: int"}, "a tool whose approval was requested has changed: file"),
        ({"tool": "store"}, "Clerk no longer has the tool file"),
    ],
    ids=["changed", "missing"],
)
def test_a_changed_or_missing_tool_parks_the_run_as_incompatible(people, change, reason):
    office = Office()
    approval = waiting_approval(office)
    decide.decide(people["approver"], approval.id, "approve")
    with working(office.team(SO, **change)):
        (run,) = ended_runs()

    assert (run.status, office.filed) == ("incompatible", [])
    assert event_bodies("run.incompatible")[0]["reason"] == reason


@pytest.mark.parametrize("column", ["state", "sdk", "state_mac"])
def test_a_kept_state_that_was_changed_is_not_used(people, column):
    office = Office()
    approval = waiting_approval(office)
    decide.decide(people["approver"], approval.id, "approve")
    value = getattr(Run.objects.get(), column)
    Run.objects.update(**{column: value.replace(value[5], "x" if value[5] != "x" else "y", 1)})
    with working(office.team(SO)):
        (run,) = ended_runs()

    assert (run.status, office.filed) == ("incompatible", [])


@pytest.mark.slow
def test_a_call_inside_an_agent_tool_waits_and_goes_on_under_the_call_that_caused_it(people):
    filed = []

    def house(outer, inner):
        @function_tool(needs_approval=True)
        def file(street: str) -> str:
            """File."""
            filed.append(street)
            return "filed"

        desk = Agent(name="Desk", model=ScriptedModel(inner), tools=[file])
        clerk = Agent(name="Clerk", model=ScriptedModel(outer), tools=[agent_tool(desk, "ask_desk", "Ask.")])
        return Team(name="office", agents=[clerk], entry=["Clerk"])

    calls = [function_call("ask_desk", {"input": "file it"}, call_id="o1")]
    with working(house([calls], [[function_call("file", {"street": "A"}, call_id="i1")]])):
        send_message()
        ended_runs()
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"o1": "executing", "i1": "waiting"}
    decide.decide(people["approver"], Approval.objects.get().id, "approve")
    with working(house([SO], [[assistant_message("inner says filed")]])):
        (run,) = ended_runs()

    assert (run.status, filed) == ("done", ["A"])
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"o1": "done", "i1": "done"}
    outer = ToolCall.objects.get(call_id="o1").id
    inner = [step for step in event_bodies("tool_step") if step["tool_call_id"] == "i1"]
    assert [step["parent_call"] for step in inner] == [outer, outer]
    assert [(o["text"], o.get("parent_call")) for o in event_bodies("output")] == [
        ("inner says filed", outer),
        ("Done so.", None),
    ]
