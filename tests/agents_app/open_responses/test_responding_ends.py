"""How requests of the responses door end besides well: refused, cut off, cancelled, waiting, run again; what the client
is told of it, and what the record has."""

import json

import pytest
from agents import Agent, RunContextWrapper, Usage, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal, ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary
from pydantic import BaseModel

from agents_app.model_providers.providers import ModelConfig
from agents_app.open_responses import history
from agents_app.teams.definition import Team
from conversations.events.log import rebuild
from conversations.events.response_ids import message_item_id
from conversations.models import Approval, Response, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, team, working
from tests.support.live import until
from tests.support.provider_server import Answer, served_apart
from tests.support.responses import answer, ask, calls, function, returned, words

pytestmark = pytest.mark.django_db(transaction=True)
WEATHER = function("weather")


def refusing(text):
    part = ResponseOutputRefusal(refusal=text, type="refusal")
    return ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")


def test_a_refusal_is_an_answer():
    with working(team([refusing("I will not.")])):
        response = ask()
        (run,) = ended_runs()

    told_ = answer(response)
    (message,) = told_["output"]
    assert (told_["status"], run.status) == ("completed", "done")
    assert message["content"] == [{"type": "refusal", "refusal": "I will not."}]
    assert message["id"] == message_item_id(response, 1)
    (output,) = event_bodies("output", response)
    assert (output["text"], output["refusal"], output["turn"]) == ("I will not.", True, 1)


@pytest.mark.parametrize(("limit", "most"), [("MAX_SIZE", 2_000), ("MAX_LINKS", 1)])
def test_a_history_beyond_the_limit_ends_the_run_before_it_is_decoded(monkeypatch, limit, most):
    monkeypatch.setattr(history, limit, most)
    with working(team([assistant_message("One.")], [assistant_message("Two.")])):
        first = ask("x" * 1_200)
        second = ask("y" * 1_200, previous=first)
        runs = ended_runs(2)

    assert [run.status for run in runs] == ["done", "failed"]
    refused = answer(second)
    assert (refused["status"], refused["error"]["code"]) == ("failed", "invalid_request")
    assert "compact them" in refused["error"]["message"]


def test_what_a_model_thought_comes_before_what_it_said():
    thought = ResponseReasoningItem(
        id="rs_1", type="reasoning", summary=[Summary(text="Hm.", type="summary_text")], encrypted_content="x"
    )
    model = ScriptedModel([[thought, assistant_message("So.")], [assistant_message("Again.")]])
    clerk = Agent(name="Clerk", model=model)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        first = ask()
        ended_runs()
        ask("and?", previous=first)
        ended_runs(2)

    assert [item["type"] for item in answer(first)["output"]] == ["reasoning", "message"]
    assert answer(first)["output"][0]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert [item.get("type") or item["role"] for item in model.last_call.input][1] == "reasoning"


FORM = {"type": "json_schema", "name": "place", "schema": {"type": "object", "properties": {}}, "strict": False}


@pytest.mark.parametrize(
    ("text", "status"), [('{"city": "Oslo"}', "completed"), ("{}", "completed"), ('{"city', "failed")]
)
def test_an_answer_in_the_form_that_was_asked_for_goes_through_as_it_is(text, status):
    model = ScriptedModel([[assistant_message(text)]])
    with working(Team(name="test", agents=[Agent(name="Clerk", model=model)], entry=["Clerk"])):
        response = ask(params={"text": {"format": FORM}})
        ended_runs()

    told_ = answer(response)
    assert (told_["status"], words(told_)) == (status, [text])
    assert model.last_call.output_schema.json_schema() == FORM["schema"]
    assert status == "completed" or "does not match the requested JSON" in told_["error"]["message"]


def test_an_answer_as_long_as_its_limit_is_incomplete():

    model = ScriptedModel([[assistant_message("Once upon a time")]], default_usage=Usage(1, 3, None, 16, None, 19))
    with working(Team(name="test", agents=[Agent(name="Clerk", model=model)], entry=["Clerk"])):
        response = ask(params={"max_output_tokens": 16})
        (run,) = ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert (told_["output"][0]["status"], run.status) == ("incomplete", "done")
    assert model.last_call.model_settings.max_tokens == 16


@function_tool
async def stall() -> str:
    """Stall."""
    import asyncio

    await asyncio.sleep(60)
    return "never"


def test_a_response_that_a_person_stops_is_cancelled(people, monkeypatch):
    from agents_app.worker import agent_run

    monkeypatch.setattr(agent_run, "GRACE", 0.1)
    with working(team([assistant_message("Wait."), function_call("stall", {}, call_id="c1")], hosted_tools=[stall])):
        response = ask(tools=[function("stall")])
        until(lambda: ToolCall.objects.filter(status="executing").exists(), what="the call to run")
        stop_and_rerun.cancel_run(people["operator"], Run.objects.get().id)
        ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["error"], words(told_)) == ("cancelled", None, ["Wait."])


class Kept(BaseModel):
    response_id: str = ""


@function_tool
def look() -> str:
    """Look."""
    return "seen"


def gated(*steps, filed):
    @function_tool(needs_approval=True)
    def file(street: str) -> str:
        """File."""
        filed.append(street)
        return "filed"

    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[file, look])
    return Team(name="office", agents=[clerk], entry=["Clerk"], context=Kept)


ASK = [
    assistant_message("One moment."),
    function_call("file", {"street": "Elm"}, call_id="c1"),
    function_call("weather", {"city": "A"}, call_id="c2"),
]


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_run_that_waited_for_a_person_goes_on_to_its_answer_with_the_clients_call(people, decision):
    filed = []
    with working(gated(ASK, filed=filed)):
        response = ask("file it", tools=[WEATHER])
        ended_runs()
    assert ToolCall.objects.filter(origin="external").count() == 0
    decide.decide(people["approver"], Approval.objects.get().id, decision)
    with working(gated([assistant_message("Done.")], filed=filed)):
        until(lambda: Response.objects.get().out_seq, what="the response to end")
        (call,) = calls(answer(response))
        second = ask([returned(call, "rain")], previous=response)
        ended_runs(2)

    told_ = answer(response)
    assert (told_["status"], words(told_), call["name"]) == ("completed", ["One moment."], "weather")
    assert filed == (["Elm"] if decision == "approve" else [])
    assert words(answer(second)) == ["Done."]
    expected = {"c1": "done" if filed else "rejected", "c2": "done"}
    assert dict(ToolCall.objects.values_list("call_id", "status")) == expected


@pytest.mark.parametrize(("decision", "most"), [("approve", 2), ("approve", 3), ("reject", 2), ("respond", 2)])
def test_a_limit_of_calls_counts_those_made_and_those_asked_about_before_a_person_decided(people, decision, most):
    steps = [function_call("look", {}, call_id="c1")], [function_call("file", {"street": "Elm"}, call_id="c2")]
    with working(gated(*steps, filed=[])):
        response = ask("file it", params={"max_tool_calls": most})
        ended_runs()
    text = {"output": "filed by hand"} if decision == "respond" else {}
    decide.decide(people["approver"], Approval.objects.get().id, decision, **text)
    steps = [function_call("look", {}, call_id="c3")], [assistant_message("Done.")]
    with working(gated(*steps, filed=[])):
        ended_runs()

    told_ = answer(response)
    expected = ("incomplete", {"reason": "max_tool_calls"}) if most == 2 else ("completed", None)
    assert (told_["status"], told_["incomplete_details"]) == expected
    assert ToolCall.objects.filter(call_id="c3").exists() == (most == 3)


def test_a_run_again_answers_in_the_record_and_no_client(people):
    with working(team(ModelStep.raise_error(RuntimeError("down")), [assistant_message("Now.")])):
        response = ask()
        (failed,) = ended_runs()
        stop_and_rerun.run_again(people["operator"], failed.id)
        ended_runs(2)

    assert answer(response)["status"] == "failed"
    assert event_kinds(response).count("response.completed") == 1
    assert event_bodies("output", response)[0]["text"] == "Now."


def test_a_request_to_a_team_goes_through_its_handoffs_with_the_requests_tools():
    front = Agent(name="Front", model=ScriptedModel([[function_call("transfer_to_back", {}, call_id="h1")]]))
    model = ScriptedModel([[function_call("weather", {"city": "A"}, call_id="c1")]])
    back = Agent(name="Back", model=model, instructions="You are the back.")
    front.handoffs, back.handoffs = [back], [front]
    with working(Team(name="cycle", agents=[front, back], entry=["Front"])):
        response = ask(agent="Front", tools=[WEATHER], instructions="Be brief.", params={"temperature": 0.5})
        ended_runs()

    assert calls(answer(response))[0]["name"] == "weather"
    assert [(move["from_agent"], move["to_agent"]) for move in event_bodies("agent.handoff", response)] == [
        ("Front", "Back")
    ]
    assert model.last_call.system_instructions == "You are the back."
    assert front.model.last_call.system_instructions == "Be brief."
    assert model.last_call.model_settings.temperature == 0.5
    assert (front.tools, back.tools, back.handoffs) == ([], [], [front])


@pytest.mark.parametrize("own", ["Own words.", lambda context, agent: f"I am {agent.name}."], ids=["text", "function"])
def test_instructions_of_a_request_come_after_an_agents_own(own):
    model = ScriptedModel([[assistant_message("Yes.")]])
    clerk = Agent(name="Clerk", model=model, instructions=own)
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        ask(instructions="Be brief.")
        ended_runs()

    first = "Own words." if isinstance(own, str) else "I am Clerk."
    assert model.last_call.system_instructions == f"{first}\n\nBe brief."


def test_a_tool_of_the_teams_own_goes_before_a_clients_of_that_name():
    @function_tool
    def weather() -> str:
        """Our own."""
        return "ours"

    steps = [function_call("weather", {}, call_id="c1")], [assistant_message("So.")]
    with working(team(*steps, tools=[weather])):
        response = ask(tools=[WEATHER])
        ended_runs()

    assert (calls(answer(response)), event_bodies("tool_step", response)[-1]["output"]) == ([], "ours")


def test_a_tool_with_a_handoffs_name_is_refused():
    front, back = Agent(name="Front", model=ScriptedModel([])), Agent(name="Back", model=ScriptedModel([]))
    front.handoffs = [back]
    with working(Team(name="two", agents=[front, back], entry=["Front"])):
        response = ask(agent="Front", tools=[function("transfer_to_back")])
        ended_runs()

    assert answer(response)["error"]["code"] == "invalid_request"


def test_arguments_that_are_no_json_come_back_to_the_client_as_they_are():
    with working(team([function_call("weather", '{"city": ', call_id="c1")])):
        response = ask(tools=[WEATHER])
        ended_runs()

    assert calls(answer(response))[0]["arguments"] == '{"city": '
    assert ToolCall.objects.get().status == "called"


def test_a_chain_that_goes_on_twice_answers_its_call_in_the_record_once():
    steps = [function_call("weather", {}, call_id="c1")], [assistant_message("One.")], [assistant_message("Two.")]
    with working(team(*steps)):
        first = ask(tools=[WEATHER])
        ended_runs()
        call = calls(answer(first))[0]
        second = ask([returned(call, "rain")], previous=first)
        ended_runs(2)
        two = ask([returned(call, "snow")], previous=first, key="fork")
        ended_runs(3)

    assert (words(answer(second)), words(answer(two))) == (["One."], ["Two."])
    ended = [step for step in event_bodies("tool_step", first) if step.get("status") == "success"]
    assert [step["output"] for step in ended] == ["rain"]
    assert event_bodies("tool_step", "fork") == []


def test_a_fork_closes_a_call_that_the_first_line_left_open():
    steps = [function_call("weather", {}, call_id="c1")], [assistant_message("One.")], [assistant_message("Two.")]
    with working(team(*steps)):
        first = ask(tools=[WEATHER])
        ended_runs()
        ask("forget it", previous=first)
        ended_runs(2)
        ask([returned(calls(answer(first))[0], "snow")], previous=first, key="fork")
        ended_runs(3)

    assert event_bodies("tool_step", first)[-1]["output"] == "snow"
    assert ToolCall.objects.get().status == "done"


def test_a_rebuild_changes_nothing_of_responses_and_their_open_and_closed_calls():
    steps = [function_call("weather", {}, call_id="c1"), function_call("weather", {}, call_id="c2")]
    with working(team(steps, [assistant_message("One.")])):
        first = ask(tools=[WEATHER])
        ended_runs()
        ask([returned(calls(answer(first))[0], "rain")], previous=first)
        ended_runs(2)
    before = [list(model.objects.order_by("pk").values()) for model in (ToolCall, Response, Run)]

    for _ in rebuild.rebuild():
        pass

    assert [list(model.objects.order_by("pk").values()) for model in (ToolCall, Response, Run)] == before
    assert dict(ToolCall.objects.values_list("call_id", "status")) == {"c1": "done", "c2": "called"}


def test_a_teams_context_is_kept_between_the_responses_of_a_conversation_and_knows_the_response():
    class Counted(BaseModel):
        seen: list[str] = []
        response_id: str = ""

    @function_tool
    def count(ctx: RunContextWrapper[Counted]) -> str:
        """Count."""
        ctx.context.seen.append(ctx.context.response_id)
        return json.dumps(ctx.context.seen)

    steps = [[function_call("count", {}, call_id="c1")], [assistant_message("so")]] * 2
    with working(team(*steps, tools=[count], context=Counted)):
        first = ask()
        ended_runs()
        second = ask("more", previous=first)
        ended_runs(2)

    assert json.loads(event_bodies("tool_step", first)[-1]["output"]) == [first, second]


def cut_by_responses(reason):
    """Write the stream of a server that ends an answer itself."""
    part = {"type": "output_text", "text": "Once", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "incomplete", "content": [part]}
    at = {"item_id": "m", "output_index": 0, "content_index": 0}
    details = {"input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 1}}
    usage = {"input_tokens": 5, "output_tokens": 16, "total_tokens": 21, **details}
    head = {"id": "r", "object": "response", "created_at": 1, "model": "m", "tools": [], "tool_choice": "auto"}
    head |= {"parallel_tool_calls": True, "status": "incomplete", "incomplete_details": {"reason": reason}}
    events = [
        {"type": "response.created", "response": head | {"output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"content": []}},
        {"type": "response.content_part.added", **at, "part": part | {"text": ""}},
        {"type": "response.output_text.delta", **at, "delta": "Once", "logprobs": []},
        {"type": "response.incomplete", "response": head | {"output": [item], "usage": usage}},
    ]
    return b"".join(f"data: {json.dumps(e | {'sequence_number': n})}\n\n".encode() for n, e in enumerate(events))


def cut_by_chat(text):
    """Write the stream of a server that stops at a number of tokens."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 5, "completion_tokens": 16, "total_tokens": 21}
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}], "usage": None},
        {"choices": [], "usage": usage},
    ]
    return b"".join(f"data: {json.dumps(head | chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("model", "body", "reason", "expected"),
    [
        ("responses:m", cut_by_responses("max_output_tokens"), "max_output_tokens", ["Once"]),
        ("responses:m", cut_by_responses("content_filter"), "content_filter", ["Once"]),
        ("chat:m", cut_by_chat("Once"), "max_output_tokens", ["Once"]),
        ("chat:m", cut_by_chat(""), "max_output_tokens", []),
    ],
    ids=["responses", "filtered", "chat", "before a word"],
)
def test_an_answer_that_its_server_cut_off_is_incomplete_and_has_what_was_said(model, body, reason, expected):
    with served_apart(lambda n, request: Answer(body)) as server:
        config = ModelConfig(api_key="sk-a", base_url=server.url, model="m")
        with working(team(), config=config):
            response = ask(agent="Plain model", model=model, params={"max_output_tokens": 16})
            (run,) = ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["incomplete_details"], words(told_)) == ("incomplete", {"reason": reason}, expected)
    assert [item["status"] for item in told_["output"]] == ["incomplete"] * len(expected)
    assert told_["usage"] is None if not expected else told_["usage"]["output_tokens"] == 16
    assert run.status == "done"
