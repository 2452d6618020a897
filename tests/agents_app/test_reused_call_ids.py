"""A provider that uses a call id again for another call: each is made, and told apart by its use."""

import json

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from conversations.models import Approval, Run, ToolCall, User
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import person
from tests.support.live import until
from tests.support.provider_answers import call, message, streamed
from tests.support.provider_server import Answer, served_apart

pytestmark = pytest.mark.django_db(transaction=True)

ELM, MILL = {"street": "Elm"}, {"street": "Mill"}
DONE = streamed([message("Both are dry.")])


def look_team(*, gated=False):
    """Its tools note what ran; each team is the same one as another process would make it."""
    ran = []

    @function_tool(needs_approval=gated)
    def look(street: str) -> str:
        """Look."""
        ran.append(street)
        return f"{street} is dry"

    return Team(name="house", agents=[Agent(name="Clerk", model="m", tools=[look])], entry=["Clerk"]), ran


def config_of(server, api):
    return ModelConfig(api_key="sk-test-1234", base_url=server.url, model=f"{api}:m", retries=0)


def chatted(*calls):
    """The chat completions' answer of these calls, or of none: a text."""
    tools = [
        {"index": n, "id": id_, "type": "function", "function": {"name": "look", "arguments": json.dumps(arguments)}}
        for n, (id_, arguments) in enumerate(calls)
    ]
    delta = {"tool_calls": tools} if tools else {"content": "Both are dry."}
    reason = "tool_calls" if tools else "stop"
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": None}
    chunk = head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return Answer(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())


def responded(*calls):
    return streamed([call("look", arguments, id_) for id_, arguments in calls]) if calls else DONE


def joined():
    """(call id, use, arguments, output) of each call, by its start."""
    steps = {(body["tool_call"], body["status"]): body for body in event_bodies("tool_step")}
    rows = ToolCall.objects.order_by("called_seq")
    return [(row.call_id, row.nth, steps[row.id, "start"]["args"], steps[row.id, "success"]["output"]) for row in rows]


BOTH = [("c1", 1, ELM, "Elm is dry"), ("c1", 2, MILL, "Mill is dry")]


@pytest.mark.parametrize(("api", "answer"), [("responses", responded), ("chat", chatted)])
@pytest.mark.parametrize("turns", [[["c1"], ["c1"]], [["c1", "c1"]]], ids=["one after the other", "side by side"])
def test_each_call_of_one_id_is_made_and_kept_apart(api, answer, turns):
    streets = iter([ELM, MILL])
    answers = [answer(*((id_, next(streets)) for id_ in ids)) for ids in turns] + [answer()]
    team, ran = look_team()
    with served_apart(lambda n, request: answers[n]) as server, working(team, config=config_of(server, api)):
        send_message()
        (run,) = ended_runs()

    assert (run.status, sorted(ran)) == ("done", ["Elm", "Mill"])
    if len(turns) == 2:
        assert joined() == BOTH
    else:  # which of two begins first is not said
        assert sorted(row[1] for row in joined()) == [1, 2]
        assert sorted((id_, args["street"], output) for id_, _, args, output in joined()) == [
            ("c1", "Elm", "Elm is dry"),
            ("c1", "Mill", "Mill is dry"),
        ]


def test_a_model_that_a_team_brings_itself_may_use_an_id_again():
    steps = [[function_call("look", street, call_id="c1")] for street in (ELM, MILL)] + [[assistant_message("Dry.")]]
    team, ran = look_team()
    team.agents[0].model = ScriptedModel(steps)
    with working(team):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ran, joined()) == ("done", ["Elm", "Mill"], BOTH)


def test_the_same_call_of_the_same_id_is_not_made_again():
    answers = [responded(("c1", ELM)), responded(("c1", ELM)), DONE]
    team, ran = look_team()
    with served_apart(lambda n, request: answers[n]) as server, working(team, config=config_of(server, "responses")):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ran) == ("done", ["Elm"])


@pytest.mark.slow
def test_calls_of_one_id_are_decided_apart_and_run_in_another_process():
    answers = [responded(("c1", ELM)), responded(("c1", MILL)), DONE]
    april, ran = person("april", "approver"), []
    with served_apart(lambda n, request: answers[n]) as server:
        for decision in ("approve", "reject", None):
            team, made = look_team(gated=True)
            with working(team, config=config_of(server, "responses")):
                if decision == "approve":
                    send_message()
                until(lambda: Run.objects.filter(status__in=("waiting", "done")), what="the run to stop")
            ran += made
            if decision:
                decide.decide(april, Approval.objects.get(status="pending").id, decision)

    assert (Run.objects.get().status, ran) == ("done", ["Elm"])
    rows = ToolCall.objects.order_by("nth").values_list("call_id", "nth", "status")
    assert list(rows) == [("c1", 1, "done"), ("c1", 2, "rejected")]


def door_team():
    """Its tools take no arguments, so that their calls differ by name alone."""
    ran = []

    def tool(name, *, gated):
        def act() -> str:
            ran.append(name)
            return f"{name}: done"

        return function_tool(act, name_override=name, description_override=name, needs_approval=gated)

    tools = [
        tool("lock", gated=True),
        tool("unlock", gated=True),
        tool("ring", gated=False),
        tool("knock", gated=False),
    ]
    return Team(name="doors", agents=[Agent(name="Clerk", model="m", tools=tools)], entry=["Clerk"]), ran


def decided(decision, which):
    """Wait for the request of this number, and decide it."""
    until(lambda: Approval.objects.count() > which, within=20, what=f"request {which + 1}")
    approval = Approval.objects.order_by("asked_seq")[which]
    until(lambda: Run.objects.get().status == "waiting", what="the run to wait")
    decide.decide(User.objects.get(username="april"), approval.id, decision)


@pytest.mark.slow
def test_another_tool_under_the_id_of_a_rejected_call_is_asked_about():
    answers = [streamed([call("lock", {}, "c1")]), streamed([call("unlock", {}, "c1")]), DONE]
    team, ran = door_team()
    person("april", "approver")
    with served_apart(lambda n, request: answers[n]) as server, working(team, config=config_of(server, "responses")):
        send_message()
        decided("reject", 0)
        decided("approve", 1)
        (run,) = ended_runs()

    assert (run.status, ran) == ("done", ["unlock"])
    rows = ToolCall.objects.order_by("nth").values_list("name", "call_id", "nth", "status")
    assert list(rows) == [("lock", "c1", 1, "rejected"), ("unlock", "c1", 2, "done")]


@pytest.mark.slow
def test_another_tool_under_the_id_of_a_call_of_an_earlier_attempt_is_called():
    answers = [[call("ring", {}, "c1")], [call("lock", {}, "c2")], [call("knock", {}, "c1")]]
    answers = [streamed(calls) for calls in answers] + [DONE]
    team, ran = door_team()
    person("april", "approver")
    with served_apart(lambda n, request: answers[n]) as server, working(team, config=config_of(server, "responses")):
        send_message()
        decided("approve", 0)
        (run,) = ended_runs()

    assert (run.status, ran) == ("done", ["ring", "lock", "knock"])
