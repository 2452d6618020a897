"""A message to a remote agent runs it there; what it says and does enters the conversation."""

import json
import urllib.request

import pytest

from conversations.core import remote_agent_setting
from conversations.core.outbound_address import NONE
from conversations.core.principals import SYSTEM
from conversations.models import Approval, Conversation, Event, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.live import free_port, until

pytestmark = pytest.mark.django_db(transaction=True)


def ask(words: str, key: str = "remote") -> None:
    send_message(words, key=key, to="agent:Weather")


def last_output(key: str = "remote") -> str:
    return event_bodies("output", key)[-1]["text"]


def inputs(elsewhere: str, thread: str) -> list[dict]:
    """Return what the agent was sent of a thread."""
    with urllib.request.urlopen(f"{elsewhere}inputs", timeout=20) as answer:
        return [payload for payload in json.load(answer) if payload["threadId"] == thread]


@pytest.mark.slow
def test_a_message_runs_it_there_and_its_words_are_the_answer(remote, elsewhere):
    with working(remote()):
        ask("hello there", "remote-first")
        (run,) = ended_runs()
        ask("and again", "remote-first")
        ended_runs(2)

    assert run.status == "done"
    assert [body["text"] for body in event_bodies("output", "remote-first")] == [
        "You said: hello there",
        "You said: and again",
    ]
    assert [body["text"] for body in event_bodies("token", "remote-first")]
    first, second = inputs(elsewhere, "remote-first")
    assert [message["role"] for message in first["messages"]] == ["user"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert first["authorization"] == "Bearer there-1"
    assert event_bodies("run.done", "remote-first")[0]["usage"]["input_tokens"] == 5


@pytest.mark.slow
def test_its_tools_steps_and_state_are_claims(remote, elsewhere):
    with working(remote()):
        ask("tool please", "remote-tool")
        ended_runs()
        ask("and then", "remote-tool")
        ended_runs(2)

    (call,) = ToolCall.objects.filter(conversation__key="remote-tool")
    assert (call.name, call.status, call.run) == ("weather", "done", None)
    claims = Event.objects.filter(conversation__key="remote-tool", principal="bus:agui").order_by("seq")
    assert list(claims.values_list("kind", flat=True)) == [
        "agui.step_started", "tool_step", "tool_step", "agui.step_finished", "agui.state_snapshot", "agui.custom",
    ]  # fmt: skip
    assert inputs(elsewhere, "remote-tool")[1]["state"] == {"city": "Bonn"}


def test_what_it_tells_again_of_an_earlier_run_is_not_its_answer(remote):
    with working(remote()):
        ask("replay please", "remote-replay")
        (run,) = ended_runs()

    assert run.status == "done"
    assert [body["text"] for body in event_bodies("output", "remote-replay")] == ["You said: replay please"]
    assert not ToolCall.objects.exists()


@pytest.mark.parametrize(
    ("decision", "more", "payload"),
    [
        ("approve", {}, {"approved": True}),
        ("reject", {"message": "not now"}, {"approved": False, "message": "not now"}),
        ("respond", {"output": '{"approved": true, "note": 1}'}, {"approved": True, "note": 1}),
        ("respond", {"output": "in words"}, "in words"),
        (
            "edit",
            {"arguments": {"interrupt": "int-1", "reason": "tool_call", "arguments": {"to": "c@d.example"}}},
            {"approved": True, "editedArgs": {"to": "c@d.example"}},
        ),
    ],
    ids=["approve", "reject", "answer", "words", "edit"],
)
def test_its_interrupt_is_decided_in_the_inbox_and_it_goes_on(remote, elsewhere, decision, more, payload, request):
    key = f"remote-ask-{request.node.callspec.id}"
    with working(remote()):
        ask("ask me", key)
        until(lambda: Approval.objects.filter(status="pending").exists())
        approval_event = event_bodies("approval.requested", key)[0]
        assert approval_event["args"]["message"] == "Send it?"
        assert approval_event["args"]["arguments"] == {"to": "a@b.example"}
        decide.decide(SYSTEM, Approval.objects.get().id, decision, **more)
        until(lambda: Run.objects.filter(status="done").exists())

    assert last_output(key) == f"resumed with {json.dumps([payload])}"
    entry = inputs(elsewhere, key)[-1]["resume"][0]
    assert (entry["interruptId"], entry["status"]) == ("int-1", "resolved")
    assert Run.objects.count() == 1


def test_a_question_waits_over_a_restart_of_the_worker(remote):
    with working(remote()):
        ask("ask me", "remote-restart")
        until(lambda: Run.objects.filter(status="waiting").exists())
    decide.decide(SYSTEM, Approval.objects.get().id, "approve")

    with working(remote()):
        until(lambda: Run.objects.filter(status="done").exists())

    assert last_output("remote-restart") == 'resumed with [{"approved": true}]'


BAD = {
    "fail": "the oven is broken (oven)",
    "brackets": "not JSON",
    "junk": "not JSON",
    "typeless": "without a type",
    "wrong": "an invalid TEXT_MESSAGE_CONTENT event",
    "endless": "an event of more than 1,048,576 bytes",
    "early": "began with TEXT_MESSAGE_START",
    "unopened": "continued a message that was not open",
    "cut": "ended before the run",
}


@pytest.mark.parametrize("word", list(BAD))
def test_what_goes_wrong_there_is_a_failed_run_that_says_why(remote, word):
    with working(remote()):
        ask(f"{word} now", f"remote-{word}")
        (run,) = ended_runs()

    assert run.status == "failed"
    assert BAD[word] in event_bodies("run.failed", f"remote-{word}")[0]["error"]


@pytest.mark.parametrize(
    ("path", "why"), [("moved", "it answered 307"), ("page", "text/html"), ("broken", "it answered 503: no oven today")]
)
def test_an_address_that_serves_no_agent_is_a_failed_run(remote, path, why):
    with working(remote(path)):
        ask("hello", f"remote-{path}")
        ended_runs()

    assert why in event_bodies("run.failed", f"remote-{path}")[0]["error"]


def test_an_agent_that_is_away_is_a_failed_run_that_a_person_runs_again(remote):
    with working(remote(url=f"http://127.0.0.1:{free_port()}/")):
        ask("hello", "remote-away")
        (run,) = ended_runs()
        assert "failed" in event_bodies("run.failed", "remote-away")[0]["error"]

    stop_and_rerun.run_again(SYSTEM, run.id)
    with working(remote()):
        ended_runs(2)

    assert last_output("remote-away") == "You said: hello"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/", "not a public address; SWITCHBOARD_AGUI_HOSTS can allow it"),
        ("http://169.254.169.254/latest", "not a public address"),
        ("http://[::1]:9/", "not a public address"),
        ("http://localhost:9/", "not a public address"),
    ],
)
def test_nothing_is_sent_where_nothing_may_be(remote, url, why):
    with working(remote(url=url, allowed=NONE)):
        ask("hello", "remote-near")
        ended_runs()

    assert why in event_bodies("run.failed", "remote-near")[0]["error"]


def test_one_that_falls_silent_is_given_up(remote):
    with working(remote(silence_s=0.5)):
        ask("hang on", "remote-silent")
        ended_runs()

    assert "nothing was sent for 0.5 s" in event_bodies("run.failed", "remote-silent")[0]["error"]


def test_a_person_stops_it(remote):
    with working(remote()):
        ask("hang on", "remote-stopped")
        until(lambda: event_bodies("token", "remote-stopped"))
        stop_and_rerun.cancel_run(SYSTEM, Run.objects.get().id)
        (run,) = ended_runs()

    assert run.status == "cancelled"
    assert Conversation.objects.get(key="remote-stopped").state == "open"


WRONG = [
    "x", "[]", '{"A": 1}', '{"A": {"url": "ftp://x"}}', '{"A": {"url": "https://u:p@x/"}}',
    '{"A": {"url": "https://x/", "colour": "red"}}', '{"A": {"url": "https://x/", "token": "a b"}}', '{"A": {}}',
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_a_wrong_registration_is_refused(at):
    with pytest.raises(ValueError, match=r"\w"):
        remote_agent_setting.read(WRONG[at])


def test_a_registration_is_an_address_or_more():
    text = '{"A": "https://a.example/agent", "B": {"url": "https://b.example/", "token": "t", "description": "Bakes"}}'

    first, second = remote_agent_setting.read(text)

    assert (first.name, first.url, first.token) == ("A", "https://a.example/agent", "")
    assert (second.token, second.description) == ("t", "Bakes")
    assert remote_agent_setting.read("") == []
