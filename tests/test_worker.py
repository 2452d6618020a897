"""A worker over scripted models: what becomes of a run, and what the record has of it."""

import pytest
from agents.testing import assistant_message, function_call
from agents import Agent, function_tool

from agents_app.teams import Team
from conversations.models import Conversation, Run, SessionItem, ToolCall
from tests.agents_running import kinds, over, say, team, told, working

pytestmark = pytest.mark.django_db(transaction=True)


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_a_message_is_answered_and_every_step_is_in_the_record():
    with working(team([assistant_message("Good day.")])):
        say()
        over()

    assert kinds() == ["message", "run.queued", "run.started", "output", "model.turn", "conversation.handler", "run.done"]
    (output,) = told("output")
    assert (output["text"], output["turn"], output["final"], output["agent"]) == ("Good day.", 1, True, "Clerk")
    assert "".join(token["text"] for token in told("token")) == "Good day."
    assert Conversation.objects.get().handler == "agent:Clerk"


def test_a_tool_call_is_told_with_its_identity_arguments_and_output():
    steps = [function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("5")]
    with working(team(*steps, tools=[add])):
        say()
        over()

    start, end = told("tool_step")
    assert (start["status"], start["args"], start["tool_call_id"]) == ("start", {"a": 2, "b": 3}, "c1")
    assert (start["lookup_key"], start["origin"], start["namespace"]) == ("bare:add", "function", None)
    assert (end["status"], end["output"], end["tool_call"]) == ("success", 5, start["tool_call"])
    call = ToolCall.objects.get()
    assert (call.id, call.status, call.call_id) == (start["tool_call"], "done", "c1")
    assert call.schema in told("model.turn")[0]["tools"]
