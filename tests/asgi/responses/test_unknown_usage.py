"""What a model's server did not tell of its usage is unknown, never 0: in the record, to clients, in numbers."""

import json

import pytest
from agents import Agent, function_tool

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from conversations.events import log
from conversations.models import Turn
from dashboard.pages.conversation_entries import entries_of
from tests.events.test_log import event
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.provider_answers import USAGE, call, message, streamed
from tests.support.provider_server import Answer, served_apart
from tests.support.response_desk import Desk

pytestmark = pytest.mark.django_db(transaction=True)

KNOWN = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16, "requests": 1}


@function_tool
def look(street: str) -> str:
    """Look."""
    return f"{street} is dry"


def house(api="responses"):
    return Team(name="house", agents=[Agent(name="Clerk", model=f"{api}:m", tools=[look])], entry=["Clerk"])


def config_of(server):
    return ModelConfig(api_key="sk-test-1234", base_url=server.url, model="m", retries=0)


def chatted(usage):
    chunks = [{"choices": [{"index": 0, "delta": {"content": "Dry."}, "finish_reason": "stop"}], "usage": None}]
    chunks += [{"choices": [], "usage": usage}] if usage else []
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return Answer("".join(f"data: {json.dumps(head | chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n")


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize(
    ("api", "answer"),
    [("responses", streamed([message("Dry.")], usage=None)), ("chat", chatted(None)), ("chat", chatted(ZERO))],
    ids=["responses", "chat", "chat says 0"],
)
def test_what_a_server_does_not_tell_is_unknown_everywhere(api, answer):
    desk = Desk()
    with served_apart(lambda n, request: answer) as server, working(house(api), config=config_of(server)):
        send_message("Is Elm dry?")
        ended_runs()
        response = desk.create("Is Elm dry?", model="Clerk").json
    desk.close()

    (turn,), (done,) = event_bodies("model.turn"), event_bodies("run.done")
    assert (turn["usage"], done["usage"], response["usage"]) == (None, None, None)
    assert response["output"][0]["content"][0]["text"] == "Dry."
    assert set(Turn.objects.values_list("input_tokens", "output_tokens")) == {(0, 0)}  # that they are unknown
    assert "tokens" not in "".join(map(str, entries_of(log.newest_page("c"))))


def test_a_sum_with_an_unknown_part_is_unknown_and_the_known_part_stays():
    def answer(n, request):
        return streamed([message("Dry.")], usage=None) if n else streamed([call("look", {"street": "Elm"}, "c1")])

    with served_apart(answer) as server, working(house(), config=config_of(server)):
        send_message("Is Elm dry?")
        ended_runs()

    assert [body["usage"] for body in event_bodies("model.turn")] == [KNOWN, None]
    assert event_bodies("run.done")[0]["usage"] is None
    assert list(Turn.objects.order_by("seq").values_list("input_tokens", "output_tokens")) == [(11, 5), (0, 0)]


def test_what_a_server_tells_is_added_up():
    def answer(n, request):
        return streamed([message("Dry.")] if n else [call("look", {"street": "Elm"}, "c1")], usage=USAGE)

    desk = Desk()
    with served_apart(answer) as server, working(house(), config=config_of(server)):
        response = desk.create("Is Elm dry?", model="Clerk").json
    desk.close()

    assert (response["usage"]["total_tokens"], response["usage"]["input_tokens_details"]) == (32, {"cached_tokens": 0})
    assert event_bodies("run.done", response["id"])[0]["usage"] == {
        "input_tokens": 22, "output_tokens": 10, "total_tokens": 32, "requests": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "expected", "drawn"),
    [
        ({"input_tokens": 11, "output_tokens": 5}, [(11, 5)], "11 tokens in, 5 out"),
        ({"prompt_tokens": 11, "completion_tokens": 5}, [(11, 5)], ""),
        ({"input_tokens": 11, "output_tokens": 0}, [], ""),
        ({"input_tokens": 0, "output_tokens": 5, "total_tokens": 5}, [], "5 tokens"),
        ({"input_tokens": 11}, [], ""),
        ({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}, [], ""),
    ],
    ids=str,
)
def test_of_a_foreign_turn_a_side_that_is_0_was_not_counted(usage, expected, drawn):
    log.append([event("c", event="output", agent="A", text="Dry.", usage=usage)])

    assert list(Turn.objects.order_by("seq").values_list("input_tokens", "output_tokens")) == expected
    page = "".join(map(str, entries_of(log.newest_page("c"))))
    assert drawn in page if drawn else "tokens" not in page.replace("_tokens", "")
