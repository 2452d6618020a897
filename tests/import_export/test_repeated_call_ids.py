"""Session files whose model counts its calls from 0 again (`functions.search:0`): each call is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.import_export.test_session_files import Published, followed, item
from tests.support.imported import Counts, bring, calls, in_lines, is_the_same_record, stored

pytestmark = pytest.mark.django_db(transaction=True)
ID = "functions.search:0"
AT = "2026-01-02T10:00:00.000Z"


def claude(number: int, role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """Write a line of Claude Code."""
    message = {"id": f"m{number}", "role": role, "content": list(parts)}
    return {"type": role, "sessionId": "s", "uuid": f"u{number}", "timestamp": AT, "message": message}


def pi(number: int, role: str, **fields: Any) -> dict[str, Any]:
    """Write a line of pi."""
    return {"type": "message", "id": f"p{number}", "timestamp": AT, "message": {"role": role, **fields}}


def in_claude(number: int, query: str) -> list[Any]:
    """Write a call and its result."""
    call = {"type": "tool_use", "id": ID, "name": "search", "input": {"q": query}}
    result = {"type": "tool_result", "tool_use_id": ID, "content": f"{query}?"}
    return [claude(number, "assistant", call), claude(number + 1, "user", result)]


def in_codex(number: int, query: str) -> list[Any]:
    """Write a call and its result, at their own second."""
    call = item("function_call", name="search", arguments=json.dumps({"q": query}), call_id=ID)
    at = {"timestamp": f"2026-01-02T16:58:{number:02}.000Z"}
    return [call | at, item("function_call_output", call_id=ID, output=f"{query}?") | at]


def in_pi(number: int, query: str) -> list[Any]:
    """Write a call and its result."""
    call = {"type": "toolCall", "id": ID, "name": "search", "arguments": {"q": query}}
    result = {"toolCallId": ID, "toolName": "search", "content": [{"type": "text", "text": f"{query}?"}]}
    return [pi(number, "assistant", content=[call]), pi(number + 1, "toolResult", **result)]


SESSIONS = {
    "claude": [claude(1, "user", {"type": "text", "text": "Search."})],
    "codex": [{"timestamp": AT, "type": "session_meta", "payload": {"id": "019b", "cwd": "/srv/app"}}],
    "pi": [{"type": "session", "id": "s", "timestamp": AT, "cwd": "/srv/app"}],
}
CALLS = {"claude": in_claude, "codex": in_codex, "pi": in_pi}


def session(path: Path, program: str, *queries: str) -> Path:
    """Write a session with a call for each query."""
    made = [CALLS[program](10 * (number + 1), query) for number, query in enumerate(queries)]
    return in_lines(path, [*SESSIONS[program], *(line for lines in made for line in lines)])


@pytest.mark.parametrize("program", SESSIONS)
@pytest.mark.parametrize("second", ["tides", "weather"])
def test_a_call_whose_id_begins_anew_is_another_call(tmp_path, program, second):
    whole = session(tmp_path / "whole.jsonl", program, "tides", second, "moon")
    is_the_same_record(whole, session(tmp_path / "half.jsonl", program, "tides", second))

    bring(whole)

    assert calls(next(iter(stored()))) == [("search", "done")] * 3


@pytest.mark.parametrize("program", SESSIONS)
def test_a_follower_that_begins_again_has_the_same_calls(tmp_path, program):
    path, published = session(tmp_path / "x.jsonl", program, "tides", "weather"), Published()
    followed(path, published)
    before = dict(published.payloads)

    followed(path, published)

    assert published.payloads == before
    assert sum(payload.get("event") == "tool_step" for payload in before.values()) == 4


def test_a_line_that_comes_again_is_the_same_call(tmp_path):
    lines = [*SESSIONS["claude"], *in_claude(10, "tides")]

    bring(in_lines(tmp_path / "x.jsonl", [*lines, *lines[1:]]))

    assert stored() == {"claude-code-s": Counts(messages=1, calls=1)}
