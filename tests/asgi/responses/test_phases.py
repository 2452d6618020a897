"""A model's answer of several messages (commentary, then the final answer): each once, in order, with its phase."""

import json
from contextlib import closing

import pytest
from agents import Agent, function_tool

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from conversations.events import log
from conversations.models import Event
from dashboard.pages.conversation_entries import entries_of
from tests.asgi.responses.test_responses_endpoint import replayed
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.provider_answers import call, message, streamed
from tests.support.provider_server import served_apart
from tests.support.response_desk import Desk

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = [message("Checking.", "commentary", 1), message("The answer is 4.", "final_answer", 2)]
PHASES = [("Checking.", "commentary"), ("The answer is 4.", "final_answer")]


@function_tool
def look(street: str) -> str:
    """Look."""
    return f"{street} is dry"


def house(*, tools=()):
    return Team(name="house", agents=[Agent(name="Clerk", model="responses:m", tools=list(tools))], entry=["Clerk"])


def config_of(server):
    return ModelConfig(api_key="sk-test-1234", base_url=server.url, model="responses:m", retries=0)


def asked_with(server, n):
    """What the model was told of messages, in its n-th request."""
    items = server.requests[n].body["input"]
    return [
        (item["content"] if isinstance(item["content"], str) else item["content"][0]["text"], item.get("phase"))
        for item in items
        if item.get("role") == "assistant"
    ]


def outputs(key="c"):
    return [(body["text"], body.get("phase"), body["final"]) for body in event_bodies("output", key)]


@pytest.fixture
def desk():
    with closing(Desk()) as opened:
        yield opened


def test_each_message_is_recorded_once_and_the_model_is_told_each_once():
    with served_apart(lambda n, request: streamed(BOTH)) as server, working(house(), config=config_of(server)):
        send_message("What is 2 + 2?")
        ended_runs()
        send_message("And again?")
        ended_runs(2)

    assert outputs() == [("Checking.", "commentary", False), ("The answer is 4.", "final_answer", True)] * 2
    assert asked_with(server, 1) == PHASES
    tokens = [
        json.loads(body) for body in Event.objects.filter(kind="token").order_by("id").values_list("body", flat=True)
    ]
    assert "".join(token["text"] for token in tokens) == "Checking.The answer is 4." * 2
    drawn = "".join(map(str, entries_of(log.newest_page("c"))))
    assert drawn.count("Checking.") == drawn.count('<span class="tag">commentary</span>') == 2
    assert len({(token["run_id"], token["turn"]) for token in tokens}) == 4


def test_a_message_before_a_call_is_no_final_answer():
    def answer(n, request):
        return streamed([BOTH[1]] if n else [BOTH[0], call("look", {"street": "Elm"}, "c1")])

    with served_apart(answer) as server, working(house(tools=[look]), config=config_of(server)):
        send_message("Is Elm dry?")
        (run,) = ended_runs()

    assert run.status == "done"
    assert outputs() == [("Checking.", "commentary", False), ("The answer is 4.", "final_answer", True)]
    assert asked_with(server, 1) == PHASES[:1]


def test_a_client_is_answered_each_message_as_json_and_as_a_stream(desk):
    with served_apart(lambda n, request: streamed(BOTH)) as server, working(house(), config=config_of(server)):
        whole = desk.create("What is 2 + 2?", model="Clerk").json
        events = desk.stream("And again?", model="Clerk", previous_response_id=whole["id"])

    for response in (whole, events[-1]["response"]):
        assert [(item["content"][0]["text"], item["phase"]) for item in response["output"]] == PHASES
    assert replayed(events) == events[-1]["response"]["output"]
    for kind in ("added", "done"):
        items = [event["item"] for event in events if event["type"] == f"response.output_item.{kind}"]
        assert [item["phase"] for item in items] == ["commentary", "final_answer"]
    assert asked_with(server, 1) == PHASES


def test_a_message_without_a_phase_has_none(desk):
    with (
        served_apart(lambda n, request: streamed([message("Good day.")])) as server,
        working(house(), config=config_of(server)),
    ):
        response = desk.create("hello", model="Clerk").json

    assert [item["content"][0]["text"] for item in response["output"]] == ["Good day."]
    assert "phase" not in response["output"][0]
    assert "phase" not in event_bodies("output", response["id"])[0]
