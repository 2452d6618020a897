"""Arguments of a model's calls that the SDK or the record could not hold, as a model writes them that cuts an emoji in
its middle: those of one call, never the end of a run."""

import json

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall

from agents_app.model_providers.providers import ModelConfig
from agents_app.model_providers.sent_arguments import harmless
from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from conversations.models import ToolCall
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.provider_answers import call, message, streamed
from tests.support.provider_server import Answer, served_apart
from tests.support.responses import ask

SO = [assistant_message("so")]
DEEP = '{"text": "so", "more": ' + "[" * 150 + "]" * 150 + "}"


@function_tool
def echo(text: str) -> str:
    """Return a text."""
    return text


def streamed_call(sent, name="echo"):
    return streamed([call(name, {}, "c1") | {"arguments": sent}])


def chatted_call(sent, name="echo"):
    """The same as chat completions."""
    tool = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": sent}}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": None}
    chunk = head | {"choices": [{"index": 0, "delta": {"tool_calls": [tool]}, "finish_reason": "tool_calls"}]}
    return Answer(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())


def chatted_end(_):
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": None}
    chunk = head | {"choices": [{"index": 0, "delta": {"content": "so"}, "finish_reason": "stop"}]}
    return Answer(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())


ODD = pytest.mark.parametrize(
    ("sent", "recorded", "output"),
    [
        (r'{"text": "half of \ud83d"}', r'{"text": "half of \ufffd"}', "half of \ufffd"),
        (r'{"text": "so", "\ud83d": 1}', r'{"text": "so", "\ufffd": 1}', "so"),
        ('{"text": "half of \ud83d"}', '{"text": "half of \ufffd"}', "half of \ufffd"),
        (DEEP, DEEP[: DEEP.index("[") + 99] + "…", "error"),
        ('{"text": ' + "[" * 5_000, '{"text": ' + "[" * 99 + "…", "error"),
        ("[" * 5_000, "[" * 100 + "…", "error"),
    ],
    ids=["a lone surrogate", "half a name", "half, unescaped", "150 levels", "no end", "a list without end"],
)


@pytest.mark.django_db(transaction=True)
@pytest.mark.any_database
@pytest.mark.parametrize("api", ["responses", "chat"])
@ODD
def test_arguments_that_no_column_holds_are_those_of_one_call(api, sent, recorded, output):
    answers = (streamed_call(sent), streamed([message("so")]))
    if api == "chat":
        answers = (chatted_call(sent), chatted_end(sent))
    clerk = Agent(name="Clerk", model=f"{api}:m", tools=[echo])
    with served_apart(lambda n, request: answers[n]) as server:
        config = ModelConfig(api_key="sk-test-1234", base_url=server.url, retries=0)
        with working(Team(name="t", agents=[clerk], entry=["Clerk"]), config=config):
            send_message()
            (run,) = ended_runs()

    assert (run.status, len(server.requests)) == ("done", 2), run.reason
    start, end = event_bodies("tool_step")
    assert start["args_raw"] == recorded
    assert ToolCall.objects.get().status == ("failed" if output == "error" else "done")
    assert output in end["output"]


@function_tool
def list_names() -> str:
    """Return the name of a file that is not UTF-8."""
    return "b\udcff.txt"


@pytest.mark.django_db(transaction=True)
@pytest.mark.any_database
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_output_with_half_a_character_goes_to_the_models_server_without_it(api):
    answers = (streamed_call("{}", "list_names"), streamed([message("so")]))
    if api == "chat":
        answers = (chatted_call("{}", "list_names"), chatted_end("{}"))
    clerk = Agent(name="Clerk", model=f"{api}:m", tools=[list_names])
    with served_apart(lambda n, request: answers[n]) as server:
        config = ModelConfig(api_key="sk-test-1234", base_url=server.url, retries=0)
        with working(Team(name="t", agents=[clerk], entry=["Clerk"]), config=config):
            send_message()
            (run,) = ended_runs()

    assert run.status == "done"
    assert "b\ufffd.txt" in json.dumps(server.requests[1].body, ensure_ascii=False)


@pytest.mark.django_db(transaction=True)
@pytest.mark.any_database
@pytest.mark.parametrize("more", [{"name": "ec\ud83d"}, {"call_id": "c\ud83d"}, {"namespace": "n\ud83d"}], ids=repr)
def test_a_call_whose_name_or_id_has_half_a_character_is_a_call(more):
    answers = (streamed([call("echo", {"text": "so"}, "c1") | more]), streamed([message("so")]))
    clerk = Agent(name="Clerk", model="responses:m", tools=[echo])
    with served_apart(lambda n, request: answers[n]) as server:
        config = ModelConfig(api_key="sk-test-1234", base_url=server.url, retries=0)
        with working(Team(name="t", agents=[clerk], entry=["Clerk"]), config=config):
            response = ask()
            (run,) = ended_runs()

    assert (run.status, len(server.requests)) == ("done", 2)
    (name, value), body = *more.items(), json.dumps(server.requests[1].body, ensure_ascii=False)
    assert value.replace("\ud83d", "\ufffd") in body
    assert len(event_bodies("policy.refused", response)) == (name != "call_id")


@pytest.mark.django_db(transaction=True)
@pytest.mark.any_database
@ODD
@pytest.mark.parametrize("is_inside", [False, True], ids=["the run", "a run inside a call"])
def test_such_arguments_of_a_model_that_a_team_brings_itself_are_those_of_one_call(is_inside, sent, recorded, output):
    odd_call = ResponseFunctionToolCall(type="function_call", name="echo", call_id="c1", arguments=sent)
    clerk = Agent(name="Clerk", model=ScriptedModel([[odd_call], SO]), tools=[echo])
    if is_inside:
        around = agent_tool(clerk, "ask", "Ask.")
        steps = [[function_call("ask", {"input": "?"}, call_id="c0")], SO]
        clerk = Agent(name="Desk", model=ScriptedModel(steps), tools=[around])
    with working(Team(name="t", agents=[clerk], entry=[clerk.name])):
        send_message(to=f"agent:{clerk.name}")
        (run,) = ended_runs()

    assert run.status == "done", run.reason
    start, end = (step for step in event_bodies("tool_step") if step["tool_call_id"] == "c1")
    assert (start["args_raw"], ToolCall.objects.get(name="echo").status) == (
        recorded,
        "failed" if output == "error" else "done",
    )
    assert output in end["output"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.any_database
def test_a_model_that_a_team_brings_itself_is_sent_no_half_character():
    model = ScriptedModel([[function_call("list_names", {}, call_id="c1")], SO])
    with working(Team(name="t", agents=[Agent(name="Clerk", model=model, tools=[list_names])], entry=["Clerk"])):
        send_message()
        ended_runs()

    assert model.last_call.input[-1]["output"] == "b\ufffd.txt"


JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@pytest.mark.slow
@given(JSON, st.booleans())
def test_arguments_that_everything_holds_stay_as_they_are(value, is_ascii):
    sent = json.dumps(value, ensure_ascii=is_ascii)

    assert harmless(sent) == sent


@pytest.mark.slow
@given(st.text(st.sampled_from('\\u"d8cfb0[{]} '), max_size=40))
def test_what_is_harmless_can_be_encoded_and_stays_so(sent):
    text = harmless(sent)

    assert harmless(text) == text
    try:
        value = json.loads(text)
    except ValueError:
        return
    json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (r'"\ud83d\ude00"', r'"\ud83d\ude00"'),
        (r'"\\ud83d"', r'"\\ud83d"'),
        (r'"\\\ud83d"', r'"\\\ufffd"'),
        (r'"\ud83d\ud83d\ude00"', r'"\ufffd\ud83d\ude00"'),
        (r'"\ude00\ud83d"', r'"\ufffd\ufffd"'),
        (r'"\uD83Dx\uDE00"', r'"\ufffdx\ufffd"'),
    ],
)
def test_only_half_of_a_pair_is_replaced(sent, expected):
    assert harmless(sent) == expected
