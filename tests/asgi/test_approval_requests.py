"""`POST /api/v1/approvals/requests`: a call of an external agent, asked about and decided once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.doors import Caller, encode, events_of
from tests.support.live import Server

PATH = "/api/v1/approvals/requests?wait_s=0"


def body(conversation: str, **more: Any) -> bytes:
    """Write a question."""
    call = {"conversation_id": conversation, "agent": "Desk", "name": "wipe", "tool_call_id": "c1", "args_raw": "{}"}
    return encode(call | more)


def test_same_call_is_the_same_question(server: Server, agent: Caller) -> None:
    first, second = (agent.ask("POST", PATH, body("asked-twice")) for _ in range(2))

    assert (first.status, first.body["status"]) == (200, "pending")
    assert first.body == second.body
    kinds = [kind for _, kind, _ in events_of(server, "asked-twice")]
    assert kinds == ["tool_step", "run.queued", "approval.requested", "run.waiting"]


def test_question_decided_between_two_requests_is_answered(caller: Caller, agent: Caller) -> None:
    request = agent.ask("POST", PATH, body("decided between")).body
    decision = encode({"decision": "reject", "message": "Not that one."})
    assert caller.ask("POST", f"/api/v1/approvals/{request['approval_id']}/decision", decision).status == 200

    answer = agent.ask("POST", PATH, body("decided between")).body

    assert answer["approval_id"] == request["approval_id"]
    assert (answer["status"], answer["decision"], answer["message"]) == ("decided", "reject", "Not that one.")


def test_call_in_somebody_elses_conversation_is_not_asked_about(caller: Caller, agent: Caller) -> None:
    caller.publish("stream:asked-elsewhere", {"event": "log", "text": "x"})

    assert agent.ask("POST", PATH, body("asked-elsewhere")).body == {"approval_id": "", "status": "not_asked"}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"agent": "Other"}, 403),
        ({"agent": "Desk/Triage"}, 200),
        ({"name": ""}, 400),
        ({"name": None}, 400),
        ({"tool_call_id": "x" * 201}, 400),
        ({"conversation_id": "\0"}, 400),
        ({"more": 1}, 400),
    ],
)
def test_what_may_be_asked(agent: Caller, fields: dict[str, Any], status: int) -> None:
    assert agent.ask("POST", PATH, body("asked-in-bounds", **fields)).status == status


def test_approval_of_a_call_is_none_of_another_with_its_id(caller: Caller, agent: Caller) -> None:
    """Some model servers number calls from the start in each answer: two that are open at once may have the same id."""
    requests = [body("one-id-twice", args_raw=arguments) for arguments in ('{"disk":"tmp"}', '{"disk":"home"}')]
    approvals = [agent.ask("POST", PATH, request).body["approval_id"] for request in requests]
    assert len(set(approvals)) == 2
    assert caller.ask("POST", f"/api/v1/approvals/{approvals[0]}/decision", b'{"decision":"approve"}').status == 200

    answers = [agent.ask("POST", PATH, request).body for request in requests]

    assert [answer["approval_id"] for answer in answers] == approvals
    assert [answer["status"] for answer in answers] == ["decided", "pending"]


@pytest.mark.parametrize(
    ("decided", "field", "expected"),
    [
        ({"decision": "edit", "arguments": {"disk": "tmp"}}, "", ("withdrawn", None)),
        ({"decision": "edit", "arguments": {"disk": "tmp"}}, "args.disk", ("pending", None)),
        ({"decision": "respond", "output": "It is empty."}, "", ("withdrawn", None)),
        ({"decision": "approve", "message": "Fine."}, "", ("decided", "approve")),
    ],
)
def test_decision_whose_words_are_redacted_is_none_that_an_agent_could_follow(
    server: Server, caller: Caller, agent: Caller, decided: dict[str, Any], field: str, expected: tuple[str, str | None]
) -> None:
    """Whoever asks again would run with what stands in place of the arguments."""
    key = f"redacted-{decided['decision']}-{field}"
    request = body(key, args_raw='{"disk":"home"}')
    approval = agent.ask("POST", PATH, request).body["approval_id"]
    assert caller.ask("POST", f"/api/v1/approvals/{approval}/decision", encode(decided)).status == 200
    decision = next(event for event in events_of(server, key) if event[1] == "approval.decided")
    what = {"call_id": decision[2]["tool_call"], "field": field} if field else {"events": [decision[0]]}
    what |= {"reason": "a secret"} if field else {"reason": "a secret", "conversation_id": key}
    assert caller.ask("POST", "/api/v1/redactions", encode(what)).status == 201

    answer = agent.ask("POST", PATH, request).body

    assert (answer["status"], answer.get("decision")) == expected
