"""Recorded approval flows of managed agents, driven through ours: who is asked about what, what is decided, what comes
of it. None of the recorded ones is a refusal: here their calls are denied, too, asked about at once, and cut short."""

import json

import pytest
from agents import Agent, FunctionTool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import Team
from conversations.conversation import control
from conversations.models import Approval, Run, ToolCall
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.managed_flows import FILES, flow_of, needs_flows

pytestmark = [pytest.mark.django_db(transaction=True), needs_flows]

FLOWS = {path.stem.removeprefix("anthropic_managed_"): path for path in FILES}
TYPES = {str: "string", int: "integer"}


class Session:
    """A flow with an agent of ours: its tools give what the recorded ones gave; `ran` is which did."""

    def __init__(self, flow):
        self.flow, self.ran = flow, []

    def tool(self, call):
        async def invoke(context, arguments):
            self.ran.append((context.tool_call_id, json.loads(arguments)))
            return next(recorded.result for recorded in self.flow.calls if recorded.id == context.tool_call_id)

        properties = {name: {"type": TYPES[type(value)]} for name, value in call.arguments.items()}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        asks = call.id in self.flow.stopped_for
        return FunctionTool(call.name, f"Run {call.name}.", schema, invoke, needs_approval=asks)

    def steps(self):
        for turn in self.flow.turns:
            if isinstance(turn, str):
                yield [assistant_message(turn)]
            else:
                yield [function_call(call.name, call.arguments, call_id=call.id) for call in turn]

    def worker(self, steps):
        tools = list({call.name: self.tool(call) for call in self.flow.calls}.values())
        self.model = ScriptedModel(steps)
        return working(Team(name="m", agents=[Agent(name="Clerk", model=self.model, tools=tools)], entry=["Clerk"]))

    def begin(self):
        """Run it to its first stop; return the questions by the provider's call ids."""
        first, *self.later = self.steps()
        with self.worker([first] if self.flow.stopped_for else [first, *self.later]):
            send_message(self.flow.words)
            ended_runs()
        ids = dict(ToolCall.objects.values_list("id", "call_id"))
        return {ids[approval.tool_call]: approval for approval in Approval.objects.all()}

    def go_on(self):
        """Run it to its end by another worker; return the run and what the model heard."""
        with self.worker(self.later):
            (run,) = ended_runs()
        return run, json.dumps(self.model.first_call.input, ensure_ascii=False, default=str)


def outputs():
    return {body["tool_call_id"]: body["output"] for body in event_bodies("tool_step") if body["status"] == "success"}


@pytest.mark.parametrize("name", FLOWS)
def test_a_recorded_flow_asks_decides_and_ends_as_it_did(people, name):
    session = Session(flow := flow_of(FLOWS[name]))

    request = session.begin()
    assert list(request) == flow.stopped_for
    for call in (call for call in flow.calls if call.id in request):
        assert [body["args"] for body in event_bodies("approval.requested") if body["tool_call_id"] == call.id] == [
            call.arguments
        ]
        answer = {"decision": "respond", "output": call.result} if call.is_answered else {"decision": "approve"}
        assert call.is_answered or call.is_allowed
        decide.decide(people["approver"], request[call.id].id, **answer)
    if request:
        session.go_on()

    assert Run.objects.get().status == "done"
    assert outputs() == {call.id: call.result for call in flow.calls}
    assert session.ran == [(call.id, call.arguments) for call in flow.calls if not call.is_answered]
    assert [body["text"] for body in event_bodies("output") if body["final"]] == [flow.answer]


def asking(*names):
    """The calls of recorded flows that asked, in one flow."""
    flows = [flow_of(FLOWS[name]) for name in names]
    calls = [call for flow in flows for call in flow.calls]
    return flows[0]._replace(turns=[calls, flows[0].answer], stopped_for=[call.id for call in calls])


def test_a_recorded_call_that_is_denied_with_a_message_is_not_made(people):
    session = Session(asking("mcp_tools"))
    (approval,) = session.begin().values()

    decide.decide(people["approver"], approval.id, "reject", message="Do not search the web for this.")
    run, result = session.go_on()

    assert (run.status, session.ran, ToolCall.objects.get().status) == ("done", [], "rejected")
    assert "Do not search the web for this." in result


@pytest.mark.slow
def test_several_recorded_calls_at_once_each_get_their_own_decision(people):
    flow = asking("mcp_tools", "custom_tools", "builtin_tools")
    session = Session(flow)
    request = session.begin()
    search, weather, date = flow.calls
    assert set(request) == {search.id, weather.id, date.id}

    decide.decide(people["approver"], request[search.id].id, "reject", message="No.")
    decide.decide(people["admin"], request[weather.id].id, "respond", output=weather.result)
    assert Run.objects.get().status == "waiting"  # until the last one
    decide.decide(people["approver"], request[date.id].id, "approve")
    run, _ = session.go_on()

    assert (run.status, run.attempt) == ("done", 2)
    assert session.ran == [(date.id, date.arguments)]
    assert outputs() == {weather.id: weather.result, date.id: date.result}
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {
        search.id: "rejected", weather.id: "done", date.id: "done",
    }  # fmt: skip


def test_a_recorded_flow_that_is_interrupted_while_it_asks_makes_no_call(people):
    session = Session(asking("mcp_tools", "custom_tools"))
    request = session.begin()

    control.stop(people["operator"], "c", "enough")

    assert (Run.objects.get().status, session.ran) == ("cancelled", [])
    assert {body["approval_id"] for body in event_bodies("approval.cancelled")} == {
        approval.id for approval in request.values()
    }
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"blocked"}
