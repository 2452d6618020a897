"""A client's call is closed by the run that answers it, while that run is its worker's, and once."""

from functools import partial
from typing import NamedTuple

import pytest
from agents.testing import function_call

from agents_app.open_responses import client_tool_calls
from agents_app.open_responses.preparation import prepare
from agents_app.open_responses.request import RunRequest, read
from conversations.core.errors import Fenced
from conversations.models import Event, Response, Run, ToolCall
from conversations.runs import claims
from conversations.runs.claims import Claim
from tests.support.agents_running import ended_runs, event_bodies, team, working
from tests.support.claiming import served_agents
from tests.support.meeting import run_meeting
from tests.support.responses import answer, ask, calls, function, returned

pytestmark = pytest.mark.django_db(transaction=True)
CLERK = served_agents("test", "Clerk")


class Answering(NamedTuple):
    """A run that answers a call, as its worker takes it."""

    claim: Claim
    request: RunRequest


def called() -> str:
    """Have an agent call its client's tool; return the response's id."""
    with working(team([function_call("weather", {}, call_id="c1")])):
        response = ask(tools=[function("weather")])
        ended_runs()
    return response


def answering(first: str, *keys: str) -> list[Answering]:
    """Answer the call of a response in each of these conversations, and take the runs."""
    output = [returned(calls(answer(first))[0], "rain")]
    rows = [Response.objects.get(id=ask(output, previous=first, key=key)) for key in keys]
    taken = {claim.run: claim for claim in claims.claim("w", CLERK, at_most=len(keys))}
    events = [Event.objects.get(conversation=row.conversation_id, seq=row.in_seq) for row in rows]
    return [
        Answering(taken[row.run], read(event.body, event.principal)) for row, event in zip(rows, events, strict=True)
    ]


def test_a_worker_that_lost_its_run_closes_no_call():
    first = called()
    (lost,) = answering(first, first)
    Run.objects.filter(id=lost.claim.run).update(attempt=lost.claim.attempt + 1)

    with pytest.raises(Fenced):
        prepare(*lost)

    assert ToolCall.objects.get().status == "called"


@pytest.mark.each_form  # SQLite lets one write at a time, with or without a lock
def test_of_two_runs_that_answer_a_call_at_once_one_closes_it(monkeypatch):
    first = called()
    works = [partial(prepare, *run) for run in answering(first, first, "fork")]

    run_meeting(monkeypatch, client_tool_calls, "_ended", works)  # each has found the call open

    ends = [step for step in event_bodies("tool_step", first) if step.get("status") == "success"]
    assert [step["output"] for step in ends] == ["rain"]
