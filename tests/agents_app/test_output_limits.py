"""What a model may send is bounded, in one answer and in a run: past it the run fails and says why; what came stays."""

import json

import pytest
from agents import Agent, function_tool

from agents_app.model_providers.providers import ModelConfig
from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from conversations.models import Event
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.provider_answers import call, message, streamed
from tests.support.provider_server import Answer, served_apart

pytestmark = pytest.mark.django_db(transaction=True)

MOST = 4096
LONG = "word " * 1000  # 5,000 bytes


@pytest.fixture(autouse=True)
def limits(settings):
    limited = {"model_turn_bytes": MOST, "model_run_bytes": 3 * MOST}
    settings.CONFIG = settings.CONFIG.model_copy(update=limited)


@function_tool
def look(street: str) -> str:
    """Look."""
    return f"{street} is dry"


def ran(answer, *, team=None):
    made = team or Team(name="t", agents=[Agent(name="Clerk", model="responses:m", tools=[look])], entry=["Clerk"])
    with served_apart(answer) as server:
        config = ModelConfig(api_key="sk-test-1234", base_url=server.url, retries=0, most_bytes=MOST)
        with working(made, config=config):
            send_message()
            (run,) = ended_runs()
    return run, len(server.requests)


def thought(text):
    """A stream of reasoning alone."""
    lines = [{"type": "response.created", "response": {"id": "r", "object": "response", "output": []}}]
    at = {"item_id": "rs", "output_index": 0, "content_index": 0}
    lines += [
        {"type": "response.reasoning_text.delta", "delta": text[n : n + 500], **at} for n in range(0, len(text), 500)
    ]
    return Answer("".join(f"data: {json.dumps(line)}\n\n" for line in lines).encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        streamed([message(LONG)]),
        streamed([call("look", {"street": LONG}, "c1")]),
        thought(LONG),
    ],
    ids=["text", "arguments", "thoughts"],
)
def test_an_answer_that_is_too_long_ends_the_run_with_the_reason(answer):
    run, _ = ran(lambda n, request: answer)

    failed = event_bodies("run.failed")[0]
    assert (run.status, failed["reason"]) == ("failed", "output_limit")
    assert "more than 4,096 bytes" in failed["error"]
    assert "SWITCHBOARD_MODEL_TURN_BYTES" in failed["error"]
    assert not event_bodies("tool_step")


@pytest.mark.slow
def test_what_came_before_is_kept():
    ran(lambda n, request: streamed([message(LONG)]))

    (output,) = event_bodies("output")
    bodies = Event.objects.filter(kind="token").order_by("seq").values_list("body", flat=True)
    tokens = [json.loads(body)["text"] for body in bodies]
    assert output["is_partial"]
    assert LONG.startswith("".join(tokens))
    assert MOST - 8 <= len("".join(tokens)) <= MOST


@pytest.mark.slow
def test_all_answers_of_a_run_are_bounded_together():
    run, requests = ran(lambda n, request: streamed([call("look", {"street": "a" * 3000, "n": n}, f"c{n}")]))

    failed = event_bodies("run.failed")[0]
    assert (run.status, failed["reason"], requests) == ("failed", "output_limit", 5)
    assert "SWITCHBOARD_MODEL_RUN_BYTES" in failed["error"]


def at_once(answer):
    """The same answer from a server that sends no pieces of it."""
    blocks = answer.body.split(b"\n\n")
    return Answer(b"\n\n".join(block for block in blocks if b".delta" not in block))


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [streamed([message(LONG)]), at_once(streamed([message(LONG)]))], ids=["pieces", "whole"]
)
def test_an_agent_inside_a_call_ends_the_run_as_well(answer):
    desk = Agent(name="Desk", model="responses:m")
    clerk = Agent(name="Clerk", model="responses:m", tools=[agent_tool(desk, "ask_desk", "Ask.")])
    team = Team(name="t", agents=[clerk], entry=["Clerk"])

    run, requests = ran(
        lambda n, request: answer if n else streamed([call("ask_desk", {"input": "go"}, "c1")]), team=team
    )

    assert (run.status, event_bodies("run.failed")[0]["reason"], requests) == ("failed", "output_limit", 2)


def test_a_line_without_an_end_is_not_read_to_its_end():
    endless = b'data: {"type": "response.created", "x": "' + b"x" * (16 * MOST)

    run, _ = ran(lambda n, request: Answer(endless, end="silent"))

    assert run.status == "failed"
    assert "an event of more than 32,768 bytes" in event_bodies("run.failed")[0]["error"]
