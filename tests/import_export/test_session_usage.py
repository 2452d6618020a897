"""What sessions of Claude Code and Codex spent: each answer once, with the last that is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conversations.import_export.session_follower import SessionFollower
from conversations.management.commands import follow
from tests.import_export.test_session_files import CODEX, Published, event, followed, words, written

Line = dict[str, Any]
AT = "2026-01-02T16:58:23.000Z"


def assistant(message_id: str, output: int, content: list[Line], *, agent: str = "", **more: Any) -> Line:
    """Write a line of an answer of Claude Code, or of its sub-agent."""
    message = {"id": message_id, "role": "assistant", "model": "claude", "content": content, "stop_reason": None}
    message |= {"usage": {"input_tokens": 10, "output_tokens": output}} | more
    return _line("assistant", message, agent)


def user(content: Any, *, agent: str = "", **more: Any) -> Line:
    """Write a line of what Claude Code is given."""
    return _line("user", {"role": "user", "content": content}, agent) | more


def _line(kind: str, message: Line, agent: str) -> Line:
    line = {"type": kind, "sessionId": "s", "uuid": json.dumps(message), "timestamp": AT, "message": message}
    return line | ({"isSidechain": True, "agentId": agent} if agent else {})


def text(words: str) -> list[Line]:
    """Write a part that is text."""
    return [{"type": "text", "text": words}]


def uses(number: int) -> list[Line]:
    """Write a part that calls a tool."""
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {}}]


def result(number: int) -> list[Line]:
    """Write the part with a tool's result."""
    return [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "ok"}]


def of_file(path: Path, lines: list[Line]) -> list[Line]:
    """Return what following a file publishes."""
    published = Published()
    followed(written(path, lines), published)
    return list(published.payloads.values())


def spent(payloads: list[Line]) -> dict[str, list[int]]:
    """Return the output tokens of each model call, by agent."""
    counts: dict[str, list[int]] = {}
    for payload in payloads:
        if payload.get("event") == "model.call" and "usage" in payload:
            counts.setdefault(payload["agent"], []).append(payload["usage"]["output_tokens"])
    return counts


STARTS_EARLY = [  # a tool starts, and ends, while the answer is still written
    user("go"),
    assistant("m1", 2, uses(1)),
    {"type": "progress", "sessionId": "s", "uuid": "p"},
    user(result(1)),
    user("<system-reminder>be brief</system-reminder>", isMeta=True),
    assistant("m1", 900, uses(2)),
    user(result(2)),
    assistant("m2", 50, text("done")),
]
IN_TURN = [  # two sub-agents answer at the same time, in one file
    user("go"),
    assistant("a", 2, uses(1), agent="x"),
    assistant("b", 3, uses(2), agent="y"),
    assistant("a", 900, uses(3), agent="x"),
    assistant("b", 700, uses(4), agent="y"),
]


def test_an_answer_counts_with_its_last_line_though_a_result_comes_between(tmp_path: Path) -> None:
    assert spent(of_file(tmp_path / "s.jsonl", STARTS_EARLY)) == {"Claude Code": [900, 50]}


def test_answers_of_two_agents_in_one_file_count_with_their_own_last_lines(tmp_path: Path) -> None:
    assert spent(of_file(tmp_path / "s.jsonl", IN_TURN)) == {"Claude Code/x": [900], "Claude Code/y": [700]}


def test_an_answer_is_over_with_the_next_words_of_the_person(tmp_path: Path) -> None:
    published = Published()
    path = written(tmp_path / "s.jsonl", [user("go"), assistant("m1", 7, text("done")), user("thanks")])

    SessionFollower(path, published, print).poll()

    assert spent(list(published.payloads.values())) == {"Claude Code": [7]}


def test_an_answer_with_its_stop_reason_is_counted_at_once(tmp_path: Path) -> None:
    published = Published()
    path = written(tmp_path / "s.jsonl", [assistant("m1", 1, uses(1)), assistant("m1", 9, [], stop_reason="end_turn")])

    SessionFollower(path, published, print).poll()

    assert spent(list(published.payloads.values())) == {"Claude Code": [9]}


class Interrupted:
    """A clock in whose first pause Ctrl-C is pressed."""

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, _: float) -> None:
        raise KeyboardInterrupt


def test_who_stops_following_has_the_usage_of_an_answer_that_is_long_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = Published()
    path = written(tmp_path / "s.jsonl", [user("go"), assistant("m1", 7, text("done"))])
    monkeypatch.setattr(follow, "time", Interrupted())

    with pytest.raises(KeyboardInterrupt):
        follow.Command()._follow(SessionFollower(path, published, print), is_once=False)

    assert spent(list(published.payloads.values())) == {"Claude Code": [7]}


@pytest.mark.parametrize(
    "line",
    [
        user("This session is being continued from a previous conversation.", isCompactSummary=True),
        user("<bash-stdout>a listing</bash-stdout><bash-stderr></bash-stderr>"),
        user("<bash-stderr>no such file</bash-stderr>"),
        user("<task-notification>\n<task-id>b1</task-id> done</task-notification>"),
        user(text("[Request interrupted by user]")),
        user(text("[Request interrupted by user for tool use]")),
    ],
    ids=lambda line: str(line["message"]["content"])[:40],
)
def test_what_claude_code_writes_itself_is_not_the_persons(tmp_path: Path, line: Line) -> None:
    (payload,) = of_file(tmp_path / "s.jsonl", [line])

    assert (payload["type"], payload["sender"]) == ("control", "agent:Claude Code")


@pytest.mark.parametrize("words", ["<bash-input>ls</bash-input>", "<command-name>/init</command-name>"])
def test_what_a_person_has_claude_code_run_is_the_persons(tmp_path: Path, words: str) -> None:
    (payload,) = of_file(tmp_path / "s.jsonl", [user(words)])

    assert (payload["type"], payload["sender"]) == ("message", "user")


def test_an_error_of_the_api_is_no_answer(tmp_path: Path) -> None:
    words = "API Error: 529 Overloaded"
    line = assistant("x", 0, text(words), model="<synthetic>", stop_reason="stop_sequence")

    payloads = of_file(
        tmp_path / "s.jsonl", [user("go"), assistant("m1", 7, uses(1)), line | {"isApiErrorMessage": True}]
    )

    assert spent(payloads) == {"Claude Code": [7]}
    assert [payload["event"] for payload in payloads if "error" in payload] == ["model.call"]
    assert [payload["error"] for payload in payloads if "error" in payload] == [words]
    assert not any(payload.get("event") == "output" for payload in payloads)


def counted(second: int, total: tuple[int, int] | None, last: tuple[int, int]) -> Line:
    """Write how many tokens Codex has spent: in all, and in its last call."""
    info: Line = {"last_token_usage": {"input_tokens": last[0], "output_tokens": last[1]}}
    if total is not None:
        info["total_token_usage"] = {"input_tokens": total[0], "output_tokens": total[1]}
    return event("token_count", info=info, rate_limits={"used": second}) | {
        "timestamp": f"2026-01-02T17:00:{second:02}Z"
    }


def test_a_status_of_codex_that_repeats_its_tokens_counts_once(tmp_path: Path) -> None:
    status = event("token_count", info=None, rate_limits={})
    lines = [CODEX[0], status, counted(2, (100, 10), (100, 10)), counted(3, (100, 10), (100, 10)), status]
    lines += [counted(4, (100, 10), (100, 10)), counted(5, (300, 30), (200, 20)), counted(6, (500, 50), (200, 20))]

    assert spent(of_file(tmp_path / "rollout.jsonl", lines)) == {"Codex": [10, 20, 20]}


def test_tokens_of_codex_without_a_total_count_each_time(tmp_path: Path) -> None:
    lines = [CODEX[0], counted(2, None, (100, 10)), counted(3, None, (100, 10))]

    assert spent(of_file(tmp_path / "rollout.jsonl", lines)) == {"Codex": [10, 10]}


@pytest.mark.parametrize("tag", ["turn_aborted", "subagent_notification", "skill", "user_shell_command"])
def test_what_codex_writes_itself_is_not_the_persons(tmp_path: Path, tag: str) -> None:
    payloads = of_file(tmp_path / "rollout.jsonl", [CODEX[0], words("user", f"<{tag}>\nabout it\n</{tag}>")])

    assert (payloads[-1]["type"], payloads[-1]["sender"]) == ("control", "agent:Codex")
