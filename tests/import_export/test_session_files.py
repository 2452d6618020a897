"""Session files of Claude Code, Codex and pi: imported as an independent count says, halved, followed live."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db.models import Sum

from conversations.conversation import spending
from conversations.core.errors import Conflict, Unavailable
from conversations.events.payload import check_depth
from conversations.import_export.session_follower import SessionFollower
from conversations.models import Conversation, Event, ToolCall, Turn
from tests.support import programs
from tests.support.doors import encode, events_of, message
from tests.support.live import Server, until

THEIRS = Path(settings.SAMPLES_DIR)
CLAUDE = THEIRS / "claude-code-log" / "representative_messages.jsonl"
EDGES = THEIRS / "claude-code-log" / "edge_cases.jsonl"
PI = THEIRS / "pi-sessions" / "large-session.jsonl.gz"


def item(kind: str, **payload: Any) -> dict[str, Any]:
    """Write a line of Codex."""
    return {"timestamp": "2026-01-02T16:58:23.000Z", "type": "response_item", "payload": {"type": kind, **payload}}


def event(kind: str, **payload: Any) -> dict[str, Any]:
    """Write a line of Codex that is no item of the conversation."""
    return {"timestamp": "2026-01-02T16:58:24.000Z", "type": "event_msg", "payload": {"type": kind, **payload}}


def words(role: str, text: str) -> dict[str, Any]:
    """Write a message of Codex."""
    return item(
        "message", role=role, content=[{"type": f"{'out' if role == 'assistant' else 'in'}put_text", "text": text}]
    )


USAGE = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7, "total_tokens": 107}
CODEX = [
    {"timestamp": "2026-01-02T16:58:22.000Z", "type": "session_meta", "payload": {"id": "019b", "cwd": "/srv/app"}},
    words("user", "<environment_context>linux</environment_context>"),
    words("user", "What is here?"),
    event("user_message", message="What is here?"),
    {"type": "turn_context", "payload": {"model": "gpt-5-codex"}},
    item("reasoning", summary=[]),
    item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="call_1"),
    item("function_call_output", call_id="call_1", output='{"output":"a b","metadata":{"exit_code":0}}'),
    item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="call_2"),
    item("custom_tool_call_output", call_id="call_2", output='{"output":"no","metadata":{"exit_code":1}}'),
    event("token_count", info={"last_token_usage": USAGE, "total_token_usage": USAGE}),
    words("assistant", "Two files."),
    event("agent_message", message="Two files."),
]


@pytest.fixture
def codex(tmp_path):
    """A session file of Codex."""
    return written(tmp_path / "rollout-019b.jsonl", CODEX)


def written(path: Path, lines: list[Any]) -> Path:
    """Write lines of JSON."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def lines_of(path: Path) -> list[Any]:
    """Read all lines of a file."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def state(key: str) -> dict[str, int]:
    """Count a conversation as the record has it."""
    row = Conversation.objects.get(key=key)
    turns = Turn.objects.filter(conversation=row)
    return {
        "messages": row.messages,
        "calls": row.tool_calls,
        "errors": row.errors,
        "open": ToolCall.objects.filter(conversation=row, finished_seq=None).count(),
        "input": sum(turns.values_list("input_tokens", flat=True)),
        "output": sum(turns.values_list("output_tokens", flat=True)),
    }


@pytest.mark.django_db(transaction=True)
def test_a_session_of_claude_code_counts_as_its_file():
    lines = [line for line in lines_of(CLAUDE) if "message" in line]
    parts = [(line, part) for line in lines for part in line["message"]["content"]]
    usage = {line["message"]["id"]: line["message"]["usage"] for line in lines if "usage" in line["message"]}

    call_command("import", str(CLAUDE), "--strict")

    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    assert state("claude-code-test_session") == {
        "messages": len({line["uuid"] for line, part in parts if part["type"] == "text"}),
        "calls": sum(part["type"] == "tool_use" for _, part in parts),
        "errors": sum(part.get("is_error", False) for _, part in parts),
        "open": 0,
        "input": sum(u["input_tokens"] + sum(u.get(name, 0) for name in cached) for u in usage.values()),
        "output": sum(u["output_tokens"] for u in usage.values()),
    }
    ids = [part["id"] for _, part in parts if part["type"] == "tool_use"]
    assert list(ToolCall.objects.order_by("called_seq").values_list("call_id", flat=True)) == ids


@pytest.mark.django_db(transaction=True)
def test_a_session_of_pi_counts_as_its_file():
    messages = [line["message"] for line in lines_of(PI) if line["type"] == "message"]
    spoken = [m for m in messages if m["role"] != "toolResult" and any(p["type"] == "text" for p in m["content"])]
    answers = [m for m in messages if m["role"] == "assistant"]
    spent = [m["usage"] for m in answers if m["usage"]["output"]]

    call_command("import", str(PI), "--strict")

    assert state("pi-d703a1a9-1b7b-4fb1-b512-c9738b1fe617") == {
        "messages": len(spoken),
        "calls": sum(part["type"] == "toolCall" for m in answers for part in m["content"]),
        "errors": sum(m.get("isError", False) for m in messages) + sum(m["stopReason"] == "error" for m in answers),
        "open": 18,  # of turns that were aborted
        "input": sum(u["input"] + u["cacheRead"] + u["cacheWrite"] for u in spent),
        "output": sum(u["output"] for u in spent),
    }
    assert Turn.objects.aggregate(n=Sum("cache_write_tokens"))["n"] == sum(u["cacheWrite"] for u in spent)
    (cost,) = spending.costs_of(list(Conversation.objects.values_list("id", flat=True))).values()
    assert float(cost.dollars) == pytest.approx(sum(u["cost"]["total"] for u in spent), rel=0.001)


@pytest.mark.django_db(transaction=True)
def test_a_session_of_codex_is_read_once_though_it_says_all_twice(codex):
    call_command("import", str(codex), "--strict")

    assert state("codex-019b") == {"messages": 2, "calls": 2, "errors": 1, "open": 0, "input": 100, "output": 7}
    calls = ToolCall.objects.order_by("called_seq").values_list("call_id", "name", "status")
    assert list(calls) == [("call_1", "shell", "done"), ("call_2", "apply_patch", "failed")]


@pytest.mark.django_db(transaction=True)
def test_bad_lines_are_told_with_their_place_and_what_was_expected(capsys):
    call_command("import", str(EDGES))

    error_text = capsys.readouterr().err
    assert "line 10: message of type user must be an object with content" in error_text
    assert "line 13: must be a JSON object; got str" in error_text
    assert state("claude-code-edge_cases")["errors"] == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_dry_run_tells_what_an_import_becomes_and_stores_nothing(codex, capsys):
    for path in (CLAUDE, EDGES, PI, codex):
        call_command("import", str(path), "--dry-run")
        lines = capsys.readouterr().out.splitlines()
        assert not Event.objects.exists()
        assert lines[-1] == "Nothing was stored (--dry-run)."

        call_command("import", str(path))
        assert capsys.readouterr().out.splitlines() == lines[:-1]
        for model in (Event, ToolCall, Conversation):
            model.objects.all().delete()


class Published:
    """Takes what a follower publishes, as a server would: each id once."""

    def __init__(self) -> None:
        self.payloads: dict[str, Any] = {}
        self.sent = Counter[str]()
        self.fails_at = 0

    def __call__(self, topic: str, payload: Any, bus_id: str) -> None:
        if self.fails_at and sum(self.sent.values()) + 1 == self.fails_at:
            self.fails_at = 0
            raise Unavailable("away")
        check_depth(encode(payload))
        self.sent[bus_id] += 1
        if self.payloads.setdefault(bus_id, payload) != payload:
            raise Conflict("another payload", code="id_reused")


def followed(path: Path, published: Published) -> SessionFollower:
    """Follow a file to its end."""
    follower = SessionFollower(path, published, print)
    follower.poll()
    follower.settle()
    return follower


@pytest.mark.parametrize("sample", [CLAUDE, EDGES, "codex", PI])
def test_a_file_that_grows_by_any_pieces_is_the_same_record(tmp_path, codex, sample):
    source = codex if sample == "codex" else sample
    text = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    whole = Published()
    (tmp_path / "whole.jsonl").write_bytes(text)
    followed(tmp_path / "whole.jsonl", whole)

    grown, path = Published(), tmp_path / "grown.jsonl"
    follower = SessionFollower(path, grown, print)
    assert follower.poll() == 0  # it is not there yet
    for at in range(0, len(text), max(1, len(text) // 97)):
        with path.open("ab") as file:
            file.write(text[at : at + max(1, len(text) // 97)])
        follower.poll()
    follower.settle()

    assert list(grown.payloads.values()) == list(whole.payloads.values())
    assert set(grown.sent.values()) == {1}


def test_a_file_that_is_written_anew_in_its_place_is_read_from_its_beginning(tmp_path):
    path, lines = tmp_path / "same.jsonl", CLAUDE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines))
    follower = followed(path, Published())

    path.write_bytes(b"".join(lines[:3]))

    assert follower.poll() == 3


def test_a_line_that_the_server_takes_in_no_event_is_skipped(tmp_path):
    nested: Any = "deep"
    for _ in range(120):
        nested = {"a": nested}
    call = item("function_call", name="shell", arguments=nested, call_id="call_1")
    path = written(tmp_path / "deep.jsonl", [CODEX[0], call, words("assistant", "Done.")])
    published, skipped = Published(), list[str]()

    SessionFollower(path, published, skipped.append).poll()

    assert [payload.get("text") for payload in published.payloads.values()][-1] == "Done."
    assert skipped == ["deep.jsonl, line 2: must be nested at most 100 levels deep; skipped"]


def test_a_follower_that_begins_again_says_the_same(tmp_path, codex):
    published = Published()
    followed(codex, published)
    before = dict(published.payloads)

    followed(codex, published)

    assert published.payloads == before
    assert set(published.sent.values()) == {2}


def test_a_file_that_is_cut_or_replaced_is_read_anew(codex):
    published = Published()
    follower = followed(codex, published)
    before = dict(published.payloads)

    text = codex.read_bytes()
    codex.write_bytes(text[: len(text) // 2])
    follower.poll()
    other = codex.with_suffix(".new")
    other.write_bytes(text)
    os.replace(other, codex)
    follower.poll()

    assert published.payloads == before


def _without_stop_reason(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line as versions write it that do not say when an answer is complete."""
    message = line.get("message")
    return line | {"message": message | {"stop_reason": None}} if isinstance(message, dict) else line


@pytest.mark.parametrize("fails_after", [0, 1])
def test_the_end_of_an_answer_is_said_though_another_session_takes_the_files_place(tmp_path, codex, fails_after):
    whole, published, path = Published(), Published(), tmp_path / "session.jsonl"
    lines = [json.dumps(_without_stop_reason(line)).encode() + b"\n" for line in lines_of(CLAUDE)]
    last = max(number for number, line in enumerate(lines) if json.loads(line).get("type") == "assistant")
    path.write_bytes(b"".join(lines[: last + 1]))
    followed(path, whole)
    follower = SessionFollower(path, published, print)
    follower.poll()
    assert len(published.payloads) < len(whole.payloads)

    os.replace(codex, path)
    published.fails_at = sum(published.sent.values()) + 1 if fails_after else 0
    if fails_after:
        with pytest.raises(Unavailable):
            follower.poll()
    follower.poll()

    assert whole.payloads.items() <= published.payloads.items()


def test_a_longer_copy_of_the_same_session_ends_its_answer_itself(tmp_path):
    whole, published, path = Published(), Published(), tmp_path / "session.jsonl"
    followed(CLAUDE, whole)
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    follower = SessionFollower(path, published, print)
    for count in range(1, len(lines) + 1):
        other = tmp_path / "other"
        other.write_bytes(b"".join(lines[:count]))
        os.replace(other, path)
        follower.poll()
    follower.settle()

    assert published.payloads == whole.payloads


@pytest.mark.parametrize("at", [1, 2, 5, 8])
def test_what_could_not_be_sent_is_sent_later(codex, at):
    whole, published = Published(), Published()
    followed(codex, whole)
    published.fails_at = at
    follower = SessionFollower(codex, published, print)

    with pytest.raises(Unavailable):
        follower.poll()
    follower.poll()

    assert published.payloads == whole.payloads


def test_a_session_is_followed_into_a_server_that_comes_and_goes(tmp_path):
    server = Server(tmp_path / "data").start()
    path = tmp_path / "live.jsonl"
    text = CLAUDE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(text[:4]))
    printed = tmp_path / "printed"
    follower = server.spawn(["follow", str(path)], printed, printed)
    try:
        until(lambda: counts(server)[0] == 3, what="the first lines")
        server.kill()
        with path.open("ab") as file:
            file.write(b"".join(text[4:]))
        server.start()
        until(lambda: counts(server) == (7, 2, 0), what="all lines")
    finally:
        follower.terminate()
        follower.wait(60)
        server.terminate()


def counts(server: Server) -> tuple[int, int, int]:
    """Count the messages, calls and errors that a server has."""
    with server.database() as database:
        row = database.execute("SELECT messages,tool_calls,errors FROM conversations_conversation").fetchone()
    return row or (0, 0, 0)


@pytest.mark.thorough
def test_a_telemetry_token_follows_a_session_into_a_server_elsewhere(tmp_path, door_server, callers):
    """It may report and nothing else; no run starts, nothing reaches an agent's topic."""
    session = "followed-from-elsewhere"
    lines = [json.loads(line) | {"sessionId": session} for line in CLAUDE.read_text().splitlines() if line.strip()]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    environment = {"SWITCHBOARD_URL": door_server.url, "SWITCHBOARD_DATA_DIR": str(tmp_path / "none")}
    sent = [_follow(path, environment | {"SWITCHBOARD_TOKEN": callers["telemetry"].token}) for _ in range(2)]
    refused = _follow(path, environment | {"SWITCHBOARD_TOKEN": callers["viewer"].token})

    assert [done.returncode for done in sent] == [0, 0], sent
    assert (refused.returncode, "may not report" in refused.stderr) == (1, True), refused.stderr
    events = events_of(door_server, f"claude-code-{session}")
    published = Published()
    followed(path, published)
    assert sorted(published.payloads) == sorted(body["id"] for *_, body in events)
    posts = "SELECT COUNT(*) FROM conversations_post WHERE topic LIKE '%' || ?"
    runs = (
        "SELECT COUNT(*) FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id"
        " WHERE c.key=?"
    )
    with door_server.database() as database:
        for count in (posts, runs):
            assert database.execute(count, [f"claude-code-{session}"]).fetchone() == (0,)
    title = {"event": "conversation.opened", "conversation_id": session, "title": "Another title"}
    renamed = callers["telemetry"].ask("POST", "/api/v1/report", encode(message(f"stream:{session}", title)))
    assert (renamed.status, renamed.body["error"]["field"]) == (400, "payload.event")
    assert callers["telemetry"].publish("chat:elsewhere", {"type": "message", "content": "no"}).status == 403


def _follow(path, environment):
    clean_environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SWITCHBOARD_", "DJANGO_"))
    }
    return programs.run(["follow", "--once", str(path)], clean_environment | environment)
