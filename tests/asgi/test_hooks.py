"""`POST /api/v1/hooks/…`: sessions of coding agents, recorded as they go on (§3.6)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.doors import encode, events_of
from tests.support.live import Server
from tests.support.tiers import rounds, variants

CLAUDE, CODEX = "/api/v1/hooks/claude-code", "/api/v1/hooks/codex"


def hook(session: str, name: str, **fields: Any) -> bytes:
    """Write a hook as Claude Code posts it."""
    common = {"transcript_path": f"sessions/{session}.jsonl", "cwd": "/srv/app", "permission_mode": "default"}
    return encode({"session_id": session, **common, "hook_event_name": name, **fields})


def call(session: str, name: str, number: int = 1, **fields: Any) -> bytes:
    """Write a hook of a shell command."""
    tool = {"tool_name": "Bash", "tool_input": {"command": f"make {number}", "description": "Build"}}
    ids = {} if name == "PermissionRequest" else {"tool_use_id": f"toolu_{number}"}
    return hook(session, name, **tool, **ids, **fields)


def kinds(server: Server, key: str) -> list[str]:
    """Read a conversation's types of events."""
    return [kind for _, kind, _ in events_of(server, key)]


def calls_of(server: Server, key: str) -> list[tuple[Any, ...]]:
    """Read a conversation's tool calls from the tables: call id, name, status, agent."""
    sql = (
        "SELECT t.call_id,t.name,t.status,t.agent FROM conversations_toolcall t JOIN conversations_conversation c"
        " ON c.id=t.conversation_id WHERE c.key=? ORDER BY t.called_seq"
    )
    return server.rows(sql, [key])


def test_a_session_is_a_conversation_as_it_goes_on(server, agent):
    for body in (
        hook("s1", "SessionStart", source="startup", model="claude-sonnet"),
        hook("s1", "UserPromptSubmit", prompt="Build it, please"),
        call("s1", "PreToolUse"),
        call("s1", "PostToolUse", tool_response={"stdout": "done"}),
        call("s1", "PreToolUse", 2),
        call("s1", "PostToolUseFailure", 2, error="exit 2"),
        hook("s1", "Stop", last_assistant_message="Built."),
        hook("s1", "SessionEnd", reason="logout"),
    ):
        answer = agent.ask("POST", CLAUDE, body)
        assert (answer.status, answer.body) == (200, {})

    key = "claude-code-s1"
    assert kinds(server, key) == [
        "control", "message", "tool_step", "tool_step", "tool_step", "tool_step", "output", "control"
    ]  # fmt: skip
    assert calls_of(server, key) == [("toolu_1", "Bash", "done", "Desk"), ("toolu_2", "Bash", "failed", "Desk")]
    bodies = [body for *_, body in events_of(server, key)]
    assert (bodies[1]["sender"], bodies[1]["content"]) == ("user", "Build it, please")
    assert bodies[2]["args"] == {"command": "make 1", "description": "Build"}
    assert bodies[3]["output"] == {"stdout": "done"}
    assert bodies[5]["error"] == "exit 2"
    assert bodies[6]["text"] == "Built."


def test_a_turn_that_was_steered_and_continued_has_all_its_prompts_and_answers(server, agent):
    prompts = [hook("turn", "UserPromptSubmit", prompt=text, turn_id="t1") for text in ("Build it", "No: only test it")]
    answers = [hook("turn", "Stop", last_assistant_message=text, turn_id="t1") for text in ("Stopped", "Tested")]

    for body in [*prompts, *answers, *prompts, *answers]:  # each is sent again, as after a lost connection
        assert agent.ask("POST", CODEX, body).status == 200

    texts = [body.get("content") or body.get("text") for *_, body in events_of(server, "codex-turn")]
    assert texts == ["Build it", "No: only test it", "Stopped", "Tested"]


@pytest.mark.slow
@pytest.mark.parametrize("letter", variants(["漢", "😀", "\x1b", '"']))
def test_long_texts_of_any_letters_are_shortened_to_what_an_event_holds(server, agent, letter):
    session, long = f"long-{ord(letter)}", letter * 240_000
    arguments = {"tool_name": "Write", "tool_use_id": "w", "tool_input": {"content": letter * 160_000}}

    answers = [
        agent.ask("POST", CLAUDE, body)
        for body in (
            hook(session, "UserPromptSubmit", prompt=long),
            hook(session, "PreToolUse", **arguments),
            hook(session, "PostToolUseFailure", **arguments, tool_response=long, error=long),
            hook(session, "Stop", last_assistant_message=long),
        )
    ]

    assert [answer.status for answer in answers] == [200] * 4
    prompt, started, ended, stopped = (body for *_, body in events_of(server, f"claude-code-{session}"))
    shown = (prompt["content"], started["args_raw"], ended["output"], ended["error"], stopped["text"])
    assert all("more characters)" in text and len(text) > 30_000 for text in shown)


def test_a_token_gains_nothing_in_conversations_of_others(server, agent, callers):
    agent.ask("POST", CLAUDE, call("mine", "PreToolUse"))
    other = callers["admin"]

    answers = [other.ask("POST", CLAUDE, call("mine", name)) for name in ("PreToolUse", "PermissionRequest", "Stop")]

    assert [answer.status for answer in answers] == [403, 403, 403]
    assert kinds(server, "claude-code-mine") == ["tool_step"]


def test_the_same_hooks_again_and_in_any_order_are_one_record(server, agent):
    bodies = [call("twice", name, n, tool_response="ok") for n in range(1, 4) for name in ("PreToolUse", "PostToolUse")]
    for body in [*reversed(bodies), *bodies]:
        assert agent.ask("POST", CLAUDE, body).status == 200

    assert sorted(calls_of(server, "claude-code-twice")) == [(f"toolu_{n}", "Bash", "done", "Desk") for n in (1, 2, 3)]
    assert len(kinds(server, "claude-code-twice")) == 6


NAMELESS = {
    "start": lambda session: hook(session, "SessionStart", source="startup"),
    "prompt": lambda session: hook(session, "UserPromptSubmit", prompt="go on"),
    "call": lambda session: hook(session, "PreToolUse", tool_name="Bash", tool_input={"command": "make"}),
    "result": lambda session: hook(session, "PostToolUse", tool_name="Bash", tool_response={"stdout": "ok"}),
    "answer": lambda session: hook(session, "Stop", last_assistant_message="Done."),
    "end": lambda session: hook(session, "SessionEnd", reason="logout"),
}


@pytest.mark.parametrize("name", variants(NAMELESS))
def test_hook_without_ids_that_is_sent_again_is_one(server, agent, name):
    session = f"resent-{name}"
    agent.ask("POST", CLAUDE, hook(session, "SessionStart", source="resume"))
    body = NAMELESS[name](session)
    first = agent.ask("POST", CLAUDE, body)
    once = kinds(server, f"claude-code-{session}")

    again = [agent.ask("POST", CLAUDE, body) for _ in range(2)]

    assert {answer.status for answer in (first, *again)} == {200}
    assert len(once) > 1
    assert kinds(server, f"claude-code-{session}") == once


def test_the_same_words_at_another_place_of_the_session_are_said_again(server, agent):
    prompt, answer = NAMELESS["prompt"]("repeats"), NAMELESS["answer"]("repeats")

    for body in (prompt, prompt, answer, answer, prompt, prompt, answer):
        agent.ask("POST", CLAUDE, body)

    assert kinds(server, "claude-code-repeats") == ["message", "output"] * 2


def test_a_hook_without_ids_that_comes_twice_at_once_is_one(server, agent):
    bodies = [hook("at-once", "UserPromptSubmit", prompt=f"number {n}") for n in range(rounds(4, 20))]

    for body in bodies:
        both = [threading.Thread(target=agent.ask, args=("POST", CLAUDE, body)) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()

    assert kinds(server, "claude-code-at-once") == ["message"] * len(bodies)


def test_a_sub_agent_has_a_conversation_of_its_own(server, agent):
    of_child = {"agent_id": "a1", "agent_type": "Explore"}
    for body in (
        hook("parent", "SubagentStart", **of_child),
        call("parent", "PreToolUse", **of_child),
        call("parent", "PostToolUse", **of_child, tool_response="x"),
        hook("parent", "SubagentStop", **of_child, last_assistant_message="Three files."),
    ):
        assert agent.ask("POST", CLAUDE, body).status == 200

    assert kinds(server, "claude-code-parent") == ["control", "control"]
    assert kinds(server, "claude-code-parent-a1") == ["message", "tool_step", "tool_step", "output"]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{", b'{"session_id":"x"}', b'{"session_id":7,"hook_event_name":"Stop"}', b'"\xff"'),
        *(b'{"session_id":"x","hook_event_name":"Stop","n":%b}' % n for n in (b"NaN", b"Infinity", b"-Infinity")),
    ],
)
def test_what_is_no_hook_is_refused(agent, body):
    assert agent.ask("POST", CLAUDE, body).status == 400


def test_hooks_start_no_run_and_let_nobody_in(server, agent):
    agent.ask("POST", CLAUDE, hook("quiet", "UserPromptSubmit", prompt="hello"))

    runs = (
        "SELECT COUNT(*) FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id "
        "WHERE c.key='claude-code-quiet' AND r.kind<>'external'"
    )
    assert server.rows(runs) == [(0,)]
    assert agent.get("/api/v1/conversations/claude-code-quiet").status == 403
