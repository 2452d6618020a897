"""Providers use a call id twice: each call keeps its own arguments and result, side by side, inside one another, and
across an approval."""

import asyncio

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.nested_runs import agent_tool
from agents_app.run_scope import OWN_RUNNER
from agents_app.teams.definition import Team
from agents_app.worker.call_ids import CallIdMap, EarlierCall
from conversations.models import Approval, ToolCall
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.cast import person

pytestmark = pytest.mark.django_db(transaction=True)
SO = [assistant_message("so")]


@function_tool
async def double(n: int) -> int:
    """Return after a while: small numbers later."""
    await asyncio.sleep(0.2 / n)
    return 2 * n


def call(name, call_id="s", **arguments):
    return function_call(name, arguments, call_id=call_id)


def joined():
    """(status, nth, arguments, output) of each call of the record, by its start."""
    ends = {step["tool_call"]: step.get("output") for step in event_bodies("tool_step") if step["status"] != "start"}
    starts = {step["tool_call"]: step["args"] for step in event_bodies("tool_step") if step["status"] == "start"}
    rows = ToolCall.objects.order_by("called_seq")
    return [(row.name, row.call_id, row.nth, starts.get(row.id), ends.get(row.id)) for row in rows]


@pytest.mark.parametrize(
    "steps",
    [([call("double", n=1)], [call("double", n=2)]), ([call("double", n=1), call("double", n=2)],)],
    ids=["one after the other", "side by side"],
)
def test_different_calls_that_a_model_sends_under_one_id_are_each_made(steps):
    with working(team(*steps, SO, tools=[double])):
        send_message()
        (run,) = ended_runs()

    assert run.status == "done"
    assert sorted(nth for _, _, nth, _, _ in joined()) == [1, 2]  # which of two side by side begins first is not said
    calls = [(name, call_id, arguments, output) for name, call_id, _, arguments, output in joined()]
    assert sorted(calls, key=repr) == [("double", "s", {"n": 1}, 2), ("double", "s", {"n": 2}, 4)]


def test_the_very_same_call_again_is_not_done_again():
    with working(team([call("double", n=1)], [call("double", n=1)], SO, tools=[double])):
        send_message()
        (run,) = ended_runs()

    assert run.status == "done"
    assert joined() == [("double", "s", 1, {"n": 1}, 2)]


def desks(outer, *inner, tool=double):
    """A team whose Clerk asks a desk of its own for each script of `inner`, by `ask_0`, `ask_1` and so on."""
    tools = [
        agent_tool(Agent(name=f"Desk {n}", model=ScriptedModel(steps), tools=[tool]), f"ask_{n}", "Ask.")
        for n, steps in enumerate(inner)
    ]
    clerk = Agent(name="Clerk", model=ScriptedModel(outer), tools=tools)
    return Team(name="desks", agents=[clerk], entry=["Clerk"])


def test_calls_of_one_id_inside_calls_side_by_side_keep_their_arguments_and_results():
    outer = [call("ask_0", "s", input="a"), call("ask_1", "t", input="b")]
    with working(desks([outer, SO], [[call("double", n=1)], SO], [[call("double", n=4)], SO])):
        send_message()
        (run,) = ended_runs()

    assert run.status == "done"
    assert {row[:2] + row[3:] for row in map(frozen, joined())} == {
        ("ask_0", "s", (("input", "a"),), "so"),
        ("ask_1", "t", (("input", "b"),), "so"),
        ("double", "s", (("n", 1),), 2),
        ("double", "s", (("n", 4),), 8),
    }
    assert sorted(ToolCall.objects.filter(call_id="s").values_list("nth", flat=True)) == [1, 2, 3]


def frozen(row):
    name, call_id, nth, arguments, output = row
    return name, call_id, nth, tuple(arguments.items()), output


class Gate:
    """A tool that waits for approval, and what it was called with."""

    def __init__(self):
        self.filed = []

        @function_tool(needs_approval=True)
        def file(street: str) -> str:
            """File."""
            self.filed.append(street)
            return f"filed {street}"

        self.tool = file


OUTER = [call("ask_0", "s", input="a"), call("ask_1", "t", input="b")]
INNER = [call("file", street="A")], [call("file", street="B")]


def ask_twice(gate, second=INNER[1]):
    with working(desks([OUTER], [INNER[0]], [second], tool=gate.tool)):
        send_message()
        ended_runs()
    return list(Approval.objects.order_by("asked_seq"))


@pytest.mark.slow
@pytest.mark.parametrize("first", ["approve", "reject"])
def test_two_questions_under_one_id_get_each_its_own_decision(first):
    gate, april = Gate(), person("april", "approver")
    questions = ask_twice(gate)
    second = "reject" if first == "approve" else "approve"
    for question, decision in zip(questions, (first, second), strict=True):
        decide.decide(april, question.id, decision)

    with working(desks([SO], [SO], [SO], tool=gate.tool)):
        (run,) = ended_runs()

    streets = [event["args"]["street"] for event in event_bodies("approval.requested")]
    approved = streets[0] if first == "approve" else streets[1]
    assert (run.status, gate.filed) == ("done", [approved])
    outcomes = {(row[0], row[1]): row[4] for row in joined() if row[0] != "file"}
    assert outcomes == {("ask_0", "s"): "so", ("ask_1", "t"): "so"}
    files = ToolCall.objects.filter(name="file").order_by("called_seq")
    expected = ["done", "rejected"] if first == "approve" else ["rejected", "done"]
    assert [row.status for row in files] == expected
    assert [row[3:] for row in joined() if row[4] == f"filed {approved}"] == [
        ({"street": approved}, f"filed {approved}")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("answered", ["A", "B"])
def test_questions_inside_two_calls_of_one_id_get_each_its_own_decision(answered):
    """The ids are those that the SDK gets (`unique_call_ids`); the record has one for both."""
    gate, april = Gate(), person("april", "approver")
    outer = [call("ask_0", "s", input="a"), call("ask_1", "s~0a1b2c3d", input="b")]
    with working(desks([outer], [INNER[0]], [INNER[1]], tool=gate.tool)):
        send_message()
        ended_runs()
    for question in event_bodies("approval.requested"):
        how = {"decision": "respond", "output": "known"} if question["args"]["street"] == answered else {}
        decide.decide(april, question["approval_id"], **({"decision": "approve"} | how))

    with working(desks([SO], [SO], [SO], tool=gate.tool)):
        (run,) = ended_runs()

    other = "B" if answered == "A" else "A"
    assert (run.status, gate.filed) == ("done", [other])
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"done"}
    steps = event_bodies("tool_step")
    outers = {step["tool_call"]: step["name"] for step in steps if step["name"].startswith("ask_")}
    inside = {
        outers[step["parent_call"]]: step["output"] for step in steps if step.get("output") and "file" in step["name"]
    }
    known, filed = ("ask_0", "ask_1") if answered == "A" else ("ask_1", "ask_0")
    assert inside == {known: "known", filed: f"filed {other}"}


@pytest.mark.slow
def test_equal_questions_of_two_calls_are_asked_and_done_each_once():
    gate, april = Gate(), person("april", "approver")
    questions = ask_twice(gate, second=INNER[0])
    for question in questions:
        decide.decide(april, question.id, "approve")

    with working(desks([SO], [SO], [SO], tool=gate.tool)):
        (run,) = ended_runs()

    assert (run.status, gate.filed, len(questions)) == ("done", ["A", "A"], 2)
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"done"}


def test_a_question_names_the_call_that_it_is_inside():
    ask_twice(Gate())

    outer = dict(ToolCall.objects.filter(name__startswith="ask_").values_list("name", "id"))
    inside = {event["args"]["street"]: event["parent_call"] for event in event_bodies("approval.requested")}
    assert inside == {"A": outer["ask_0"], "B": outer["ask_1"]}


@pytest.mark.parametrize("status", ["executing", "done", "failed", "unknown"])
def test_a_call_that_an_earlier_attempt_entered_keeps_its_id(status):
    calls = CallIdMap("run", [EarlierCall("first", "c1", status, "digest", "look")])

    assert calls.begin(OWN_RUNNER, "c1", "look", ["digest"]) == "first"
    assert calls.begin(OWN_RUNNER, "c1", "look", ["another"]) != "first"
    assert calls.begin(OWN_RUNNER, "c1", "other", ["digest"]) != "first"


@pytest.mark.slow
@pytest.mark.parametrize("length", [400, 401, 5_000])
def test_a_call_with_a_long_id_is_made_once_a_person_has_approved_it(length):
    ran = []

    @function_tool(needs_approval=True)
    def file(street: str) -> str:
        """File."""
        ran.append(street)
        return "filed"

    with working(team([call("file", "c".ljust(length, "z"), street="Elm")], tools=[file])):
        send_message()
        ended_runs()
    decide.decide(person("april", "approver"), Approval.objects.get().id, "approve")
    with working(team(SO, tools=[file])):
        (run,) = ended_runs()

    assert (run.status, ran, ToolCall.objects.get().status) == ("done", ["Elm"], "done")
