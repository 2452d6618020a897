"""`POST /api/v1/hooks/…`: permission requests of coding agents, decided once, here or in the terminal (§3.6)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.asgi.test_hooks import CLAUDE, CODEX, call, calls_of
from tests.support.doors import Answer, Caller, encode
from tests.support.live import Server, until
from tests.support.tiers import variants


class Asking:
    """A PermissionRequest that waits in a thread of its own."""

    def __init__(self, agent: Caller, session: str, number: int = 1, path: str = CLAUDE, wait: str = "") -> None:
        self.answer: Answer | None = None
        body = call(session, "PermissionRequest", number)

        def ask() -> None:
            self.answer = agent.ask("POST", path + wait, body)

        self._thread = threading.Thread(target=ask, daemon=True)
        self._thread.start()

    def wait_for_answer(self) -> Answer:
        """Wait for its answer."""
        self._thread.join(60)
        assert self.answer is not None
        return self.answer


def pending(approver: Caller, key: str) -> dict[str, Any]:
    """Wait for the question of a conversation in the inbox."""

    def look() -> dict[str, Any]:
        items = approver.get("/api/v1/approvals?status=pending").body["items"]
        return next((item for item in items if item["conversation_id"] == key), {})

    return until(look, what="the question")


@pytest.mark.parametrize(
    ("decided", "expected_decision"),
    [
        ({"decision": "approve"}, {"behavior": "allow"}),
        ({"decision": "reject", "message": "not today"}, {"behavior": "deny", "message": "not today"}),
        (
            {"decision": "edit", "arguments": {"command": "make check", "description": "Build"}},
            {"behavior": "allow", "updatedInput": {"command": "make check", "description": "Build"}},
        ),
    ],
)
def test_a_permission_request_is_decided_in_the_inbox(server, agent, callers, decided, expected_decision):
    session = f"asks-{decided['decision']}"
    agent.ask("POST", CLAUDE, call(session, "PreToolUse"))
    asking = Asking(agent, session)
    question = pending(callers["approver"], f"claude-code-{session}")
    assert (question["name"], question["tool_call_id"], question["agent"]) == ("Bash", "toolu_1", "Desk")

    done = callers["approver"].ask("POST", f"/api/v1/approvals/{question['approval_id']}/decision", encode(decided))

    assert done.status == 200, done
    expected = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": expected_decision}}
    assert (asking.wait_for_answer().status, asking.wait_for_answer().body) == (200, expected)
    assert len(calls_of(server, f"claude-code-{session}")) == 1


def test_codex_is_asked_for_without_edits(agent, callers):
    agent.ask("POST", CODEX, call("codex", "PreToolUse"))
    asking = Asking(agent, "codex", path=CODEX)
    question = pending(callers["approver"], "codex-codex")
    path = f"/api/v1/approvals/{question['approval_id']}/decision"

    edited = callers["approver"].ask("POST", path, encode({"decision": "edit", "arguments": {"command": "x"}}))
    approved = callers["approver"].ask("POST", path, encode({"decision": "approve"}))

    assert (edited.status, approved.status) == (400, 200)
    assert question["decisions"] == ["approve", "reject"]
    assert asking.wait_for_answer().body["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


def test_who_asks_without_a_hook_before_has_one_call(server, agent, callers):
    asking = Asking(agent, "alone")
    question = pending(callers["approver"], "claude-code-alone")
    callers["approver"].ask("POST", f"/api/v1/approvals/{question['approval_id']}/decision", b'{"decision":"reject"}')

    assert asking.wait_for_answer().body["hookSpecificOutput"]["decision"] == {"behavior": "deny"}
    assert calls_of(server, "claude-code-alone") == [(None, "Bash", "rejected", "Desk")]


def test_nobody_decides_and_the_terminal_asks(server, agent, callers):
    agent.ask("POST", CLAUDE, call("late", "PreToolUse"))
    asking = Asking(agent, "late", wait="?wait_s=1")
    question = pending(callers["approver"], "claude-code-late")

    assert asking.wait_for_answer().body == {}
    assert status_of(callers, question) == "cancelled"
    agent.ask("POST", CLAUDE, call("late", "PostToolUse", tool_response="ok"))
    assert calls_of(server, "claude-code-late") == [("toolu_1", "Bash", "done", "Desk")]


@pytest.mark.parametrize("name", ["PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit", "SessionEnd"])
def test_an_answer_in_the_terminal_closes_the_question(server, agent, callers, name):
    session = f"terminal-{name}"
    agent.ask("POST", CLAUDE, call(session, "PreToolUse"))
    asking = Asking(agent, session)
    question = pending(callers["approver"], f"claude-code-{session}")

    agent.ask("POST", CLAUDE, call(session, "PostToolUse", 2))  # of another call
    assert status_of(callers, question) == "pending"
    agent.ask("POST", CLAUDE, call(session, name, prompt="no", last_assistant_message="so"))

    assert asking.wait_for_answer().body == {}
    assert status_of(callers, question) == "cancelled"
    decided = callers["approver"].ask(
        "POST", f"/api/v1/approvals/{question['approval_id']}/decision", b'{"decision":"approve"}'
    )
    assert decided.status == 409
    over = "done" if name == "PostToolUse" else "failed" if name == "PostToolUseFailure" else "executing"
    assert calls_of(server, f"claude-code-{session}")[0] == ("toolu_1", "Bash", over, "Desk")


def test_a_client_that_leaves_takes_its_question_along(server, agent, callers):
    agent.ask("POST", CLAUDE, call("gone", "PreToolUse"))
    body = call("gone", "PermissionRequest")
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        head = f"POST {CLAUDE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {agent.token}\r\n"
        line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        question = pending(callers["approver"], "claude-code-gone")

    until(lambda: status_of(callers, question) == "cancelled", what="the question to be withdrawn")
    assert calls_of(server, "claude-code-gone") == [("toolu_1", "Bash", "executing", "Desk")]


def test_a_question_stays_while_one_of_two_who_sent_it_waits(agent, callers):
    asking = Asking(agent, "sent-twice")
    question = pending(callers["approver"], "claude-code-sent-twice")

    assert Asking(agent, "sent-twice", wait="?wait_s=1").wait_for_answer().body == {}

    assert decide(callers["approver"], question["approval_id"], "approve").status == 200
    assert asking.wait_for_answer().body["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


def test_a_token_that_is_revoked_meanwhile_is_told_nothing(server, agent, callers):
    secret = server.token("passing", "agent")
    passing = Caller(server, secret)
    passing.ask("POST", CLAUDE, call("revoked", "PreToolUse"))
    asking = Asking(passing, "revoked")
    question = pending(callers["approver"], "claude-code-revoked")

    code = "from conversations.access.accounts import tokens\nfrom conversations.core.principals import SYSTEM"
    server.command("shell", "--no-imports", "-c", f"{code}\ntokens.revoke_token(SYSTEM, 'passing')")

    assert asking.wait_for_answer().status == 401
    until(lambda: status_of(callers, question) == "cancelled", what="the question to be withdrawn")


def test_the_same_question_again_is_the_same(agent, callers):
    agent.ask("POST", CLAUDE, call("again", "PreToolUse"))
    first, second = Asking(agent, "again"), Asking(agent, "again")
    question = pending(callers["approver"], "claude-code-again")
    callers["approver"].ask("POST", f"/api/v1/approvals/{question['approval_id']}/decision", b'{"decision":"approve"}')

    assert first.wait_for_answer().body == second.wait_for_answer().body != {}
    assert Asking(agent, "again").wait_for_answer().body == first.wait_for_answer().body


def status_of(callers: dict[str, Caller], question: dict[str, Any]) -> str:
    """Read what became of a question."""
    status: str = callers["approver"].get(f"/api/v1/approvals/{question['approval_id']}").body["status"]
    return status


def decide(approver: Caller, approval: str, decision: str) -> Answer:
    """Decide in the inbox."""
    return approver.ask("POST", f"/api/v1/approvals/{approval}/decision", encode({"decision": decision}))


def at_once(*deeds: Callable[[], Any]) -> list[Any]:
    """Do all of these at the same moment; return what each gave."""
    barrier = threading.Barrier(len(deeds))
    given: list[Any] = [None] * len(deeds)

    def do(n: int) -> None:
        barrier.wait(60)
        given[n] = deeds[n]()

    threads = [threading.Thread(target=do, args=[n]) for n in range(len(deeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return given


@pytest.mark.parametrize("attempt", range(3))
def test_of_two_who_decide_at_once_one_does(agent, callers, attempt):
    session = f"race-{attempt}"
    agent.ask("POST", CLAUDE, call(session, "PreToolUse"))
    asking = Asking(agent, session)
    question = pending(callers["approver"], f"claude-code-{session}")["approval_id"]

    ways = [(callers[who], decision) for who in ("approver", "admin") for decision in ("approve", "reject")]
    answers = at_once(*[partial(decide, who, question, decision) for who, decision in ways])

    (won,) = [decision for (_, decision), answer in zip(ways, answers, strict=True) if answer.status == 200]
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    behavior = asking.wait_for_answer().body["hookSpecificOutput"]["decision"]["behavior"]
    assert behavior == {"approve": "allow", "reject": "deny"}[won]


@pytest.mark.parametrize("attempt", range(5))
def test_a_decision_here_and_one_in_the_terminal_at_once_are_one(server, agent, callers, attempt):
    session = f"both-{attempt}"
    agent.ask("POST", CLAUDE, call(session, "PreToolUse"))
    asking = Asking(agent, session)
    question = pending(callers["approver"], f"claude-code-{session}")

    decided, posted = at_once(
        partial(decide, callers["approver"], question["approval_id"], "approve"),
        partial(agent.ask, "POST", CLAUDE, call(session, "PostToolUse", tool_response="ok")),
    )

    assert posted.status == 200
    is_ours = decided.status == 200
    assert (decided.status, status_of(callers, question)) == ((200, "decided") if is_ours else (409, "cancelled"))
    assert bool(asking.wait_for_answer().body) is is_ours
    assert calls_of(server, f"claude-code-{session}") == [("toolu_1", "Bash", "done", "Desk")]


@pytest.mark.slow
@pytest.mark.parametrize("end", variants(["terminate", "kill"]))
def test_a_question_does_not_outlive_its_server_for_long(tmp_path, end):
    server = Server(tmp_path / "data", SWITCHBOARD_TEAMS="").start()
    coder, approver = Caller(server, server.token("coder", "agent")), Caller(server, server.token("boss", "approver"))
    coder.ask("POST", CLAUDE, call("s", "PreToolUse"))
    body = call("s", "PermissionRequest")
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        head = f"POST {CLAUDE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {coder.token}\r\n"
        line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        question = pending(approver, "claude-code-s")
        getattr(server, end)()
    server.start()
    try:
        callers = {"approver": approver}
        until(lambda: status_of(callers, question) == "cancelled", within=90, what="the question to be withdrawn")
        assert decide(approver, question["approval_id"], "approve").status == 409
        assert calls_of(server, "claude-code-s") == [("toolu_1", "Bash", "executing", "coder")]
        coder.ask("POST", CLAUDE, call("s", "PostToolUse", tool_response="ok"))
        assert calls_of(server, "claude-code-s") == [("toolu_1", "Bash", "done", "coder")]
    finally:
        server.terminate()
