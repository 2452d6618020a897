"""What sessions of Claude Code and Codex spent: each answer once, with the last that is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.import_export.test_session_files import CODEX, Published, event, followed, written

Line = dict[str, Any]


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
