"""Parts of answering a request, each by itself: items, tools, teams that host them, what the register says of them."""

import json

import pytest
from agents import Agent, FunctionTool, function_tool
from agents.models.chatcmpl_converter import Converter
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from agents_app.nested_runs import agent_tool
from agents_app.open_responses import model_items, request_tools
from agents_app.open_responses.request import Unfit, read
from agents_app.teams import checks
from agents_app.teams.definition import Team, TeamError
from agents_app.town_hall import TEAM
from agents_app.town_hall.hosted import _filed_at
from agents_app.town_hall.tools import reference_of
from conversations.conversation import compaction
from conversations.models import Agent as Row
from conversations.models import Approval, ToolSchema
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.cast import person
from tests.support.live import until
from tests.support.responses import answer, ask, calls, function, user, words


def model_input(*items):
    return model_items.for_model(items, compaction.text_of)


def call(call_id, name="f"):
    return {
        "type": "function_call",
        "id": "fc",
        "call_id": call_id,
        "name": name,
        "arguments": "{}",
        "status": "completed",
    }


def output(call_id, text="x"):
    return {"type": "function_call_output", "id": "o", "call_id": call_id, "output": text, "status": "completed"}


LONG = "call_0123456789abcdef"


def test_a_model_is_not_given_an_item_of_a_type_that_no_api_has():
    note = {"type": "acme:note", "id": "n1", "status": "completed"}

    made = model_input(user("a"), note, user("b"))

    assert [item["content"][0]["text"] for item in made] == ["a", "b"]
    Converter.items_to_messages(made)


def test_a_model_is_told_neither_ids_nor_statuses_of_ours():
    message_ = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"text": "b"}],
    }

    made = model_input(user("a"), message_, call(LONG), output(LONG))

    assert all(item.keys().isdisjoint({"id", "status"}) for item in made)
    assert made[1] == {"role": "assistant", "content": "b"}
    assert [item.get("call_id") for item in made[2:]] == [LONG, LONG]


@pytest.mark.parametrize("call_id", [LONG, "call_0"], ids=["long", "counted"])
def test_a_call_id_that_comes_again_stands_for_two_calls(call_id):
    made = model_input(call(call_id), output(call_id, "one"), call(call_id), output(call_id, "two"))

    first, third, second, two = (item["call_id"] for item in made)
    assert (first == third, second == two, first == second) == (True, True, False)
    assert [item["output"] for item in (made[1], made[3])] == ["one", "two"]


def test_outputs_of_one_id_answer_its_calls_in_their_order():
    made = model_input(call("a"), call("a"), output("a", "one"), output("a", "two"))

    assert made[0]["call_id"] == made[2]["call_id"] != made[1]["call_id"] == made[3]["call_id"]


def test_a_compaction_of_ours_is_words_and_a_strangers_is_refused():
    ours = compaction.item_of([user("There is a pothole.")])

    assert "pothole" in model_input(ours)[0]["content"]
    with pytest.raises(Unfit, match="was not created by this server"):
        model_input({"type": "compaction", "encrypted_content": "gAAAA"})


def test_a_redacted_request_is_empty_and_not_an_error():
    request = read('{"event": "response.received", "response_id": "resp_1"}', "token:x")

    assert (request.items, request.tools, request.tool_choice, request.forced, request.most_tokens) == (
        [],
        [],
        "auto",
        "",
        None,
    )


def test_a_schema_goes_to_the_model_as_it_came_and_strict_where_it_can_be():
    open_schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}

    plain = request_tools.client_tool("f", {"parameters": open_schema})
    strict = request_tools.client_tool("f", {"parameters": {"type": "object", "properties": {}}, "strict": True})
    impossible = request_tools.client_tool("f", {"parameters": open_schema, "strict": True})
    none = request_tools.client_tool("f", {"parameters": None})

    assert (plain.params_json_schema, plain.strict_json_schema) == (open_schema, False)
    assert strict.params_json_schema["additionalProperties"] is False
    assert (strict.strict_json_schema, impossible.strict_json_schema) == (True, False)
    assert none.params_json_schema == {"type": "object", "properties": {}}


@function_tool
def lookup(reference: str) -> str:
    """Look up."""
    return reference


def host(name="T", entry="A", **more):
    return Team(name=name, agents=[Agent(name=entry)], entry=[entry], **more)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (host(hosted_tools=[lookup, lookup]), "two of its hosted tools are called 'lookup'"),
        (host(hosted_tools=[function_tool(lambda: "x", name_override="a b")]), "needs a name of letters"),
        (host(hosted_tools=["lookup"]), "is not a function tool"),
        (host(name="Plain models"), "are reserved for the built-in team"),
        (host(entry="Plain model"), "are reserved for the built-in team"),
    ],
    ids=["twice", "name", "kind", "team", "agent"],
)
def test_a_team_that_hosts_wrongly_is_refused(wrong, why):
    with pytest.raises(TeamError, match=why):
        checks.check(wrong)


def test_two_teams_cannot_host_one_name():
    with pytest.raises(TeamError, match="already belongs to another team"):
        checks.check_together([host(hosted_tools=[lookup]), host("U", "B", hosted_tools=[lookup])])


@pytest.mark.django_db(transaction=True)
def test_the_register_shows_plain_models_with_every_hosted_tool():
    with working(host(hosted_tools=[lookup], effects={"lookup": "read"})):
        row = Row.objects.get(team="Plain models")
        (tool,) = json.loads(row.tools)

    assert (row.name, row.is_entry, row.is_demo_model) == ("Plain model", False, True)
    assert (tool["name"], tool["origin"], tool["effect"]) == ("lookup", "hosted", "read")
    assert ToolSchema.objects.filter(hash=tool["schema"], name="lookup").exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_town_hall_knows_what_became_of_an_incident_it_filed():
    with working(TEAM):
        send_message("A pothole on Mill Road 5", to="agent:Dialogue")
        ended_runs()
        arguments = event_bodies("approval.requested")[0]["args"]
        decide.decide(person("april", "approver"), Approval.objects.get().id, "approve")
        reference = reference_of(arguments["incident_type"], arguments["description"], arguments["location"])
        until(lambda: _filed_at(reference), what="the incident to be filed")
        response = ask(
            f"What is the incident status of {reference}?", agent="Plain model", model="demo",
            tools=[{"type": "town:incident_status"}],
        )  # fmt: skip
        until(lambda: event_bodies("response.completed", response), what="the answer")

    assert f"reference: {reference}; status: filed with the city" in words(answer(response))[0]


@pytest.mark.django_db(transaction=True)
def test_an_agent_inside_a_tool_is_not_offered_the_clients_tools():
    inner_model = ScriptedModel([[function_call("weather", {}, call_id="i1")], [assistant_message("Without.")]])
    inner = agent_tool(Agent(name="Inner", model=inner_model), "inner", "Ask the inner one.")
    steps = [function_call("inner", {"input": "go"}, call_id="c1")], [assistant_message("Done.")]
    with working(team(*steps, tools=[inner])):
        response = ask(tools=[function("weather")])
        ended_runs()

    assert (words(answer(response)), calls(answer(response))) == (["Done."], [])
    assert inner_model.first_call.tools == []


@pytest.mark.django_db(transaction=True)
def test_an_answer_too_large_for_the_record_is_cut_and_says_so():
    with working(team([assistant_message("é" * 600_000)])):
        response = ask()
        ended_runs()

    told_ = answer(response)
    assert (told_["status"], told_["incomplete_details"]) == ("incomplete", {"reason": "max_output_size"})
    assert (told_["output"][0]["status"], len(words(told_)[0])) == ("incomplete", 20_000)


LARGE = {
    "many messages": [assistant_message("é" * 25_000) for _ in range(60)],
    "many calls": [function_call("weather", {"city": "é" * 30_000}, call_id=f"c{n}") for n in range(40)],
    "a thought": [
        ResponseReasoningItem(id="r", type="reasoning", summary=[Summary(type="summary_text", text="é" * 600_000)]),
        assistant_message("Done."),
    ],
}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("parts", LARGE.values(), ids=LARGE)
def test_an_answer_of_parts_that_are_too_large_together_is_cut_and_ends_its_run(parts):
    with working(team(parts)):
        response = ask(tools=[function("weather")])
        (run,) = ended_runs()

    ended = answer(response)
    assert (run.status, ended["status"], ended["incomplete_details"]) == (
        *("done", "incomplete", {"reason": "max_output_size"}),
    )
    assert [item["type"] for item in ended["output"]] == [item.type for item in parts]
    assert "é" in json.dumps(ended["output"], ensure_ascii=False)


def test_a_hosted_tool_tells_what_it_is_made_of():
    (made,) = request_tools.hosted_by([host(hosted_tools=[lookup])]).values()

    assert isinstance(made.tool, FunctionTool)
    assert made.tool is not lookup
    assert (made.effect, made.tool.params_json_schema) == ("unsafe", lookup.params_json_schema)
