"""A call that waits for its client, answered by a person: once, told and audited, and the chain goes on with it."""

import json
import threading

import pytest
from agents.testing import assistant_message, function_call
from django.db import connection

from conversations.core.errors import Conflict, Invalid, NotFound, TooLate
from conversations.core.principals import SYSTEM, user_principal
from conversations.events.response_ids import ResponseRequest
from conversations.models import AuditEntry, Conversation, Event, Response, Run, ToolCall
from conversations.redaction import redact
from conversations.runs.responses import create
from conversations.runs.responses.manual_output import answer_call
from tests.support.agents_running import ended_runs, team, working
from tests.support.cast import audit_summary, client_of, last_entry
from tests.support.responses import answer, ask, calls, function, returned, words

pytestmark = pytest.mark.django_db(transaction=True)

RAIN, WIND = function("rain"), function("wind")


def waiting(*names, then=("It rained.",)):
    """Bring a response to its client's calls; return the worker's context and the response."""
    calls = [function_call(name, {"city": "Ulm"}, call_id=f"c-{name}-0123456789abcdef") for name in names]
    return working(team(calls, *([assistant_message(text)] for text in then)))


def response_with_calls(**more):
    first = ask("Is it wet?", tools=[RAIN, WIND], **more)
    ended_runs(1)
    return first


def open_calls():
    return list(ToolCall.objects.filter(status="called").order_by("called_seq"))


def test_the_agent_goes_on_with_the_answer(otto):
    with waiting("rain"):
        first = response_with_calls(instructions="Be brief.")
        (call,) = open_calls()
        second = answer_call(otto, call.id, "4 mm", reason="its client is gone")
        ended_runs(2)

    assert words(answer(second)) == ["It rained."]
    row = Response.objects.get(id=second)
    assert (row.previous, row.conversation.key, row.status) == (first, first, "completed")
    call.refresh_from_db()
    assert call.status == "done"
    step = Event.objects.get(seq=call.finished_seq)
    assert step.principal == "user:otto"
    assert json.loads(step.body) | {"output": "4 mm", "answered_by": "user:otto"} == json.loads(step.body)
    received = Event.objects.get(seq=row.in_seq)
    body = json.loads(received.body)
    assert (received.principal, body["instructions"], body["tools"]) == ("user:otto", "Be brief.", [RAIN, WIND])
    assert body["input"] == [{"type": "function_call_output", "call_id": call.call_id, "output": "4 mm"}]
    entry = last_entry()
    assert audit_summary(entry) == ("user:otto", "answer_call", f"call:{call.id}", "done")
    assert (entry.reason, json.loads(entry.correlation)["response"]) == ("its client is gone", second)


def test_with_several_open_calls_the_last_answer_goes_on_with_all(otto, people):
    with waiting("rain", "wind"):
        response_with_calls()
        rain, wind = open_calls()
        assert answer_call(otto, wind.id, "none") is None
        assert Run.objects.count() == 1
        second = answer_call(people["admin"], rain.id, "")
        ended_runs(2)

    body = json.loads(Event.objects.get(seq=Response.objects.get(id=second).in_seq).body)
    assert [(item["call_id"], item["output"]) for item in body["input"]] == [(rain.call_id, ""), (wind.call_id, "none")]


def test_of_two_people_at_once_one_answers_and_the_other_learns_who(people):
    with waiting("rain", "wind"):
        response_with_calls()
    call, start, outcomes = open_calls()[0], threading.Barrier(2), {}

    def act(name):
        start.wait()
        try:
            outcomes[name] = answer_call(user_principal(name), call.id, name)
        except TooLate as late:
            outcomes[name] = late
        connection.close()

    threads = [threading.Thread(target=act, args=[name]) for name in ("otto", "ada")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    (loser,) = [name for name, outcome in outcomes.items() if outcome is not None]
    winner = {"otto": "ada", "ada": "otto"}[loser]
    assert outcomes[loser].first["by"] == f"user:{winner}"
    assert (outcomes[loser].code, f"user:{winner} already answered this call" in str(outcomes[loser])) == (
        "already_answered",
        True,
    )
    assert Event.objects.filter(kind="tool_step", body__contains='"answered_by"').count() == 1
    assert AuditEntry.objects.filter(verb="answer_call").values_list("outcome").distinct().count() == 2


def test_a_client_that_came_first_has_won(otto):
    with waiting("rain"):
        first = response_with_calls()
        (call,) = open_calls()
        ask([returned(calls(answer(first))[0], "9 mm")], previous=first)
        ended_runs(2)
    with pytest.raises(TooLate, match="token:script already answered this call"):
        answer_call(otto, call.id, "4 mm")


def test_a_client_that_has_gone_on_and_waits_for_a_worker_has_won_too(otto):
    with waiting("rain"):
        first = response_with_calls()
    (call,) = open_calls()
    ask([returned(calls(answer(first))[0], "9 mm")], previous=first)

    with pytest.raises(Conflict, match="has already continued without this call"):
        answer_call(otto, call.id, "4 mm")

    assert open_calls() == [call]


def test_a_client_that_comes_after_goes_on_beside_it(otto, people):
    with waiting("rain", then=("By hand.", "By the client.")):
        first = response_with_calls()
        (call,) = open_calls()
        answer_call(otto, call.id, "4 mm")
        ended_runs(2)
        output = returned(calls(answer(first))[0], "9 mm")
        went_on = ResponseRequest(model="Clerk", input=[output], previous_response_id=first, tools=[RAIN, WIND])
        beside = create.receive(people["admin"], went_on)
        ended_runs(3)

    assert words(answer(beside.response)) == ["By the client."]
    fork = Conversation.objects.get(key=beside.conversation)
    assert fork.parent.key == first
    call.refresh_from_db()
    assert json.loads(Event.objects.get(conversation__key=first, seq=call.finished_seq).body)["output"] == "4 mm"


def test_what_cannot_be_answered_says_why(otto):
    with waiting("rain"):
        response_with_calls(store=False)
    (call,) = open_calls()

    with pytest.raises(NotFound):
        answer_call(otto, "nothing", "x")
    with pytest.raises(Invalid, match="at most 262,144 characters"):
        answer_call(otto, call.id, "x" * 262_145)
    with pytest.raises(Conflict, match="cannot be continued"):
        answer_call(otto, call.id, "x")
    ToolCall.objects.update(origin="function")
    with pytest.raises(Conflict, match="does not run on a client"):
        answer_call(otto, call.id, "x")


# The page and the API.


def test_nothing_goes_on_from_a_request_that_was_redacted(otto):
    with waiting("rain"):
        response_with_calls(instructions="Say nothing about the wind.")
        (call,) = open_calls()
    redact.redact(SYSTEM, call.conversation.key, [Response.objects.get().in_seq], "asked for")

    with pytest.raises(Conflict, match="was redacted") as refused:
        answer_call(otto, call.id, "4 mm")

    assert refused.value.code == "not_continuable"
    assert Run.objects.count() == 1


@pytest.mark.slow
def test_the_block_has_a_form_until_it_is_answered(otto):
    with waiting("rain"):
        key = response_with_calls()
    (call,) = open_calls()
    browser = client_of(otto)
    assert f'form="answers" name="call" value="{call.id}"' in browser.get(f"/conversations/{key}/").content.decode()

    form = {"call": call.id, f"output:{call.id}": "4\r\nmm", f"reason:{call.id}": "by hand"}
    done = browser.post("/calls/answers/", form)

    assert done["Location"] == f"/conversations/{key}/?event={call.called_seq}#e{call.called_seq}"
    page = browser.get(f"/conversations/{key}/").content.decode()
    assert 'form="answers" name="call"' not in page
    assert "output supplied by <bdi>user:otto</bdi>" in page
    call.refresh_from_db()
    assert json.loads(Event.objects.get(conversation__key=key, seq=call.finished_seq).body)["output"] == "4\nmm"
    assert last_entry().reason == "by hand"


def test_the_api_answers_once(otto):
    with waiting("rain"):
        response_with_calls()
    (call,) = open_calls()
    address, body = f"/api/v1/tool-calls/{call.id}/answer", {"output": "4 mm", "reason": "gone"}
    browser = client_of(otto)

    first = browser.post(address, body, content_type="application/json")
    second = browser.post(address, body, content_type="application/json")

    assert first.json() == {"tool_call": call.id, "response_id": Response.objects.latest("in_seq").id}
    assert second.status_code == 409
    assert second.json()["error"] | {"code": "already_answered", "by": "user:otto"} == second.json()["error"]
    assert client_of().post(address, "{}", content_type="application/json").status_code == 401
