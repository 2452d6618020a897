"""Requests of the responses door, executed: answers, tools of both kinds, chains, limits. Over scripted models."""

import json

import pytest
from agents import Agent, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from agents_app.run_scope import current_scope
from agents_app.teams.definition import Team
from conversations.events.response_ids import call_item_id, message_item_id
from conversations.models import Run, SessionItem, ToolCall
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, team, working
from tests.support.responses import answer, ask, calls, function, returned, user, words

pytestmark = pytest.mark.django_db(transaction=True)
WEATHER = function("weather")


@function_tool
def lookup(reference: str) -> str:
    """Look up."""
    scope = current_scope()
    return f"{reference} for {scope.response_id if scope else 'nobody'}"


@function_tool(failure_error_function=None)
def broken() -> str:
    """Break."""
    raise ValueError("the drawer is stuck")


HOSTED = function("lookup", reference={"type": "string"})


def test_a_request_is_answered_with_its_text_and_usage():
    with working(team([assistant_message("Good day.")])):
        response = ask()
        ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["error"], told_["incomplete_details"]) == ("completed", None, None)
    assert told_["output"] == [
        {
            "type": "message",
            "id": message_item_id(response, 1),
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Good day.", "annotations": [], "logprobs": []}],
        }
    ]
    assert told_["usage"] is None  # a scripted model tells none
    assert event_kinds(response)[-2:] == ["response.completed", "run.done"]
    assert "conversation.handler" not in event_kinds(response)
    assert not SessionItem.objects.exclude(payload__startswith='{"switchboard.context"').exists()


def test_a_call_of_the_clients_tool_ends_the_run_and_is_closed_by_its_output():
    steps = [function_call("weather", '{"city":  "Oslo"}', call_id="c1")], [assistant_message("Rain.")]
    with working(team(*steps)):
        first = ask("Weather?", tools=[WEATHER])
        ended_runs()
        (call,) = calls(answer(first))
        open_ = ToolCall.objects.get()
        second = ask([returned(call, "rain")], previous=first, tools=[WEATHER])
        ended_runs(2)

    assert (call["name"], call["arguments"], call["status"]) == ("weather", '{"city":  "Oslo"}', "completed")
    assert call["id"] == call_item_id(first, "c1", 1)
    assert (open_.status, open_.origin, open_.call_id, Run.objects.earliest("queued_seq").status) == (
        "called",
        "external",
        "c1",
        "done",
    )
    assert words(answer(second)) == ["Rain."]
    closed = ToolCall.objects.get()
    assert (closed.id, closed.status, closed.run) == (open_.id, "done", open_.run)
    end = event_bodies("tool_step", first)[-1]
    assert (end["output"], end["answered_by"], end["tool_call"]) == ("rain", "token:script", open_.id)


def test_a_hosted_tool_runs_here_and_is_in_the_record_alone():
    steps = [function_call("lookup", {"reference": "R1"}, call_id="c1")], [assistant_message("Found.")]
    with working(team(*steps, hosted_tools=[lookup])):
        response = ask(tools=[HOSTED])
        ended_runs()

    assert [item["type"] for item in answer(response)["output"]] == ["message"]
    start, end = event_bodies("tool_step", response)
    assert (start["origin"], end["status"], end["output"]) == ("hosted", "success", f"R1 for {response}")
    assert ToolCall.objects.get().status == "done"


def test_hosted_and_external_calls_of_one_turn_run_and_return():
    both = [
        function_call("weather", {"city": "A"}, call_id="c1"),
        function_call("lookup", {"reference": "R1"}, call_id="c2"),
        function_call("weather", {"city": "B"}, call_id="c3"),
    ]
    model = ScriptedModel([both, [assistant_message("All.")]])
    clerk = Agent(name="Clerk", model=model)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"], hosted_tools=[lookup])):
        first = ask(tools=[WEATHER, HOSTED])
        ended_runs()
        made = calls(answer(first))
        second = ask([returned(call, call["arguments"]) for call in made], previous=first, tools=[WEATHER])
        ended_runs(2)

    assert [call["call_id"] for call in made] == ["c1", "c3"]
    assert words(answer(second)) == ["All."]
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "done", "c3": "done"}
    given = model.last_call.input
    assert [item.get("type") or item["role"] for item in given] == [
        "user",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]


def test_a_hosted_tools_exception_goes_to_the_model_and_stays_an_error():
    steps = [function_call("broken", {}, call_id="c1")], [assistant_message("Sorry.")]
    with working(team(*steps, hosted_tools=[broken])):
        response = ask(tools=[function("broken")])
        ended_runs()

    end = event_bodies("tool_step", response)[-1]
    assert (end["status"], end["error"]) == ("error", "ValueError: the drawer is stuck")
    assert end["output"] == "The tool failed: ValueError: the drawer is stuck"
    assert (answer(response)["status"], ToolCall.objects.get().status) == ("completed", "failed")


def test_a_plain_model_has_the_requests_tools_and_instructions_alone():
    with working(team([assistant_message("unused")], hosted_tools=[lookup])):
        response = ask("lookup TH-1 please", agent="Plain model", model="demo", tools=[HOSTED])
        ended_runs()

    assert [step["origin"] for step in event_bodies("tool_step", response)] == ["hosted", "hosted"]
    assert words(answer(response)) == [f"lookup answered: TH-1 for {response}"]
    assert answer(response)["model"] == "demo model"


@pytest.mark.parametrize("depth", [1, 5])
def test_a_chain_is_rebuilt_in_order_after_every_restart(depth):
    model = ScriptedModel([[assistant_message(f"answer {n}")] for n in range(depth + 1)])
    clerk = Agent(name="Clerk", model=model)
    made = Team(name="test", agents=[clerk], entry=["Clerk"])
    previous = None
    for n in range(depth + 1):
        with working(made):
            previous = ask(f"question {n}", previous=previous, key="c")
            ended_runs(n + 1)

    expected = [word for n in range(depth) for word in (f"question {n}", f"answer {n}")]
    given = model.last_call.input
    assert [_text(item) for item in given] == [*expected, f"question {depth}"]
    assert [item["role"] for item in given] == ["user", "assistant"] * depth + ["user"]


def _text(item):
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def test_a_call_that_was_never_answered_is_left_out_of_what_the_model_is_given():
    model = ScriptedModel([[function_call("weather", {}, call_id="c1")], [assistant_message("Never mind.")]])
    clerk = Agent(name="Clerk", model=model)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        first = ask(tools=[WEATHER])
        ended_runs()
        ask("leave it", previous=first)
        ended_runs(2)

    assert [_text(item) for item in model.last_call.input] == ["hello", "leave it"]
    assert ToolCall.objects.get().status == "called"


def test_an_output_without_its_call_fails_the_response_before_a_model_is_asked():
    model = ScriptedModel([])
    clerk = Agent(name="Clerk", model=model)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        response = ask([returned({"call_id": "c9"}, "rain")])
        (run,) = ended_runs()

    assert answer(response)["error"] == {
        "code": "invalid_request",
        "message": "There is an output for the call c9, but no such open call.",
    }
    assert (run.status, run.reason, model.calls) == ("failed", "invalid_request", ())


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "weather"}])
def test_an_answer_without_the_call_that_is_required_fails(choice):
    with working(team([assistant_message("I would rather talk.")])):
        response = ask(tools=[WEATHER], tool_choice=choice)
        ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["error"]["code"]) == ("failed", "tool_choice_unmet")
    assert words(told_) == ["I would rather talk."]


def test_required_binds_the_first_sample_only():
    model = ScriptedModel([[function_call("lookup", {"reference": "R"}, call_id="c")], [assistant_message("Done.")]])
    clerk = Agent(name="Clerk", model=model)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"], hosted_tools=[lookup])):
        response = ask(tools=[HOSTED], tool_choice="required")
        ended_runs()

    assert answer(response)["status"] == "completed"
    assert [call.model_settings.tool_choice for call in model.calls] == ["required", None]


@pytest.mark.parametrize(
    ("limits", "by"),
    [({"allowed_tools": ["other"]}, "allowed_tools"), ({"tool_choice": "none"}, "tool_choice")],
    ids=["allowed", "none"],
)
@pytest.mark.parametrize("name", ["weather", "lookup"])
def test_a_call_outside_of_what_is_allowed_is_never_made(limits, by, name):
    model = ScriptedModel([[function_call(name, {"reference": "R"}, call_id="c1")], [assistant_message("Then not.")]])
    clerk = Agent(name="Clerk", model=model)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"], hosted_tools=[lookup])):
        response = ask(tools=[WEATHER, HOSTED], **limits)
        ended_runs()

    (refused,) = event_bodies("policy.refused", response)
    assert (refused["by"], refused["name"], ToolCall.objects.get().status) == (by, name, "blocked")
    assert "was not called" in model.last_call.input[-1]["output"]
    assert (words(answer(response)), calls(answer(response))) == (["Then not."], [])


def test_an_empty_list_of_allowed_tools_restricts_nothing():
    with working(team([function_call("weather", {}, call_id="c1")])):
        response = ask(tools=[WEATHER], allowed_tools=[])
        ended_runs()

    assert len(calls(answer(response))) == 1


def test_a_name_that_the_model_made_up_is_told_to_it_and_recorded():
    steps = [function_call("nonsense", {}, call_id="c1")], [assistant_message("Sorry.")]
    with working(team(*steps)):
        response = ask(tools=[WEATHER])
        ended_runs()

    assert event_bodies("policy.refused", response)[0]["reason"] == "there is no such tool"
    assert words(answer(response)) == ["Sorry."]


@pytest.mark.parametrize(
    ("params", "more", "reason"),
    [({"max_tool_calls": 1}, {}, "max_tool_calls"), ({}, {"max_turns": 2}, "max_turns")],
    ids=["calls", "turns"],
)
def test_a_limit_of_the_loop_makes_the_response_incomplete(params, more, reason):
    steps = [[function_call("lookup", {"reference": str(n)}, call_id=f"c{n}")] for n in range(3)]
    with working(team(*steps, hosted_tools=[lookup], **more)):
        response = ask(tools=[HOSTED], params=params)
        (run,) = ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["incomplete_details"], told_["error"]) == ("incomplete", {"reason": reason}, None)
    assert (run.reason, ToolCall.objects.exclude(status="done").count()) == (reason, 0)


def test_a_model_error_is_told_without_secrets():
    error = RuntimeError("401 for key sk-planted-1234567890")
    with working(team(ModelStep.raise_error(error))):
        response = ask()
        ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["error"]["code"]) == ("failed", "model_error")
    assert "401 for key" in told_["error"]["message"]
    assert "planted" not in json.dumps(told_)


def test_the_demo_stops_at_its_tokens_and_says_so():
    with working(team([assistant_message("unused")])):
        response = ask("hello", agent="Plain model", model="demo", params={"max_output_tokens": 16})
        ended_runs()

    told_ = answer(response)
    told_words = words(told_)[0] if words(told_) else ""
    assert len(told_words.split()) <= 16


def test_items_that_refer_to_others_and_histories_of_the_clients_own_are_accepted():
    model = ScriptedModel([[assistant_message("one")], [assistant_message("two")]])
    clerk = Agent(name="Clerk", model=model)
    own = [
        user("a"),
        {"type": "message", "role": "developer", "content": "be brief"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "b"}],
        },
        {"type": "function_call", "id": "fc", "call_id": "k", "name": "own", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "k", "output": [{"type": "input_text", "text": "given"}]},
    ]
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        first = ask(own, key="c")
        ended_runs()
        message_id = answer(first)["output"][0]["id"]
        second = ask([{"type": "item_reference", "id": message_id}, user("and?")], key="c")
        unknown = ask([{"type": "item_reference", "id": "msg_unknown"}], key="c")
        ended_runs(3)

    kinds_ = [item.get("type") or item["role"] for item in model.first_call.input]
    assert kinds_ == ["user", "developer", "assistant", "function_call", "function_call_output"]
    assert [_text(item) for item in model.last_call.input] == ["one", "and?"]
    assert answer(second)["status"] == "completed"
    assert answer(unknown)["error"]["code"] == "invalid_request"


TOOLS = {
    "none": [],
    "hosted": [function_call("lookup", {"reference": "R"}, call_id="h")],
    "external": [function_call("weather", {"city": "A"}, call_id="e")],
    "both": [
        function_call("lookup", {"reference": "R"}, call_id="h"),
        function_call("weather", {"city": "A"}, call_id="e"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TOOLS)
def test_every_mix_of_tools_goes_on_over_restarts(kind):
    """Three questions, each with its calls and an answer; a worker of its own for each response."""
    steps = []
    for n in range(3):
        steps += (
            [TOOLS[kind], [assistant_message(f"answer {n}")]] if TOOLS[kind] else [[assistant_message(f"answer {n}")]]
        )
    model = ScriptedModel(steps)
    served = Team(name="test", agents=[Agent(name="Clerk", model=model)], entry=["Clerk"], hosted_tools=[lookup])
    previous, made = None, []
    for n in range(3):
        given = f"question {n}"
        while given:
            with working(served):
                previous = ask(given, previous=previous, tools=[WEATHER, HOSTED], stream=bool(n % 2))
                made.append(previous)
                ended_runs(len(made))
            given = [returned(call, "rain") for call in calls(answer(previous))]

    texts = [word for response in made for word in words(answer(response))]
    assert texts == ["answer 0", "answer 1", "answer 2"]
    assert len(made) == (6 if kind in ("external", "both") else 3)
    assert set(ToolCall.objects.values_list("origin", "status")) == {
        (origin, "done") for origin in ("hosted", "external") if kind in (origin, "both")
    }
    given = [item.get("type") or item["role"] for item in model.last_call.input]
    roles = ["user"] + (["function_call", "function_call_output"] if kind in ("external", "both") else [])
    own = ["function_call", "function_call_output"] if kind == "hosted" else []
    assert given == [*roles, "assistant", *roles, "assistant", *roles, *own]
