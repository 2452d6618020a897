"""Langfuse exports: what becomes of traces and observations is what a count of the file says, in whatever form."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.imported import (
    THEIRS,
    Counts,
    agents,
    bring,
    calls,
    document,
    forget,
    in_lines,
    is_the_same_record,
    stored,
    total,
    written,
)

pytestmark = pytest.mark.django_db(transaction=True)
TRACES = sorted((THEIRS / "langfuse-traces").glob("*.trace.json"))


def observation(number: int, kind: str, parent: int | None, **more: Any) -> dict[str, Any]:
    """Write an observation of a trace of ours."""
    at = f"2026-01-02T10:00:{number:02}.000Z"
    return {
        "id": f"o{number}", "traceId": "t1", "type": kind, "parentObservationId": parent and f"o{parent}",
        "startTime": at, "endTime": at, "level": "DEFAULT", "name": kind.lower(), **more,
    }  # fmt: skip


ASKED = [{"role": "system", "content": "You read tide tables."}, {"role": "user", "content": "High water at Whitby?"}]
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"id": "call_000001", "function": {"name": "tide_table"}}]}
OURS = {
    "trace": {"id": "t1", "name": "tides", "sessionId": "harbour-7", "timestamp": "2026-01-02T10:00:00.000Z"},
    "observations": [
        observation(1, "AGENT", None, name="pilot"),
        observation(2, "GENERATION", 1, input=ASKED, output=CALLED, model="m", usageDetails={"input": 21, "output": 7}),
        observation(3, "TOOL", 1, name="tide_table", input={"harbour": "Whitby"}, output="14:20"),
        observation(4, "TOOL", 1, name="tide_table", level="ERROR", statusMessage="no such harbour"),
        observation(
            5, "GENERATION", 1, input=[*ASKED, CALLED], output="At 14:20.", usageDetails={"input": 40, "output": 9}
        ),
    ],
}
EXPECTED = Counts(messages=2, calls=2, errors=1, input_tokens=61, output_tokens=16)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """An export of one trace."""
    return written(tmp_path / "x.json", OURS)


def snake(row: dict[str, Any]) -> dict[str, Any]:
    """Write a row as the blob storage does."""
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in row.items()}


def test_an_export_becomes_its_conversation(ours):
    bring(ours)

    assert stored() == {"harbour-7": EXPECTED}
    assert agents("harbour-7") == {"pilot"}
    assert calls("harbour-7") == [("tide_table", "done"), ("tide_table", "failed")]


def test_every_form_of_an_export_is_the_same_record(ours, tmp_path):
    trace, rows = OURS["trace"], OURS["observations"]
    is_the_same_record(
        ours,
        written(tmp_path / "api.json", {**trace, "observations": rows}),
        written(tmp_path / "list.json", [{**trace, "observations": rows}]),
        in_lines(tmp_path / "rows.jsonl", random.Random(5).sample([trace, *rows], 6)),
        in_lines(tmp_path / "blob.jsonl", [snake(row) for row in (*rows, trace)]),
        written(tmp_path / "half.json", {**OURS, "observations": rows[:3]}),
    )


def called(*calls: tuple[str, str, str]) -> dict[str, Any]:
    """Write an answer with these calls: id, name and arguments."""
    made = [{"id": id_, "type": "function", "function": {"name": n, "arguments": args}} for id_, n, args in calls]
    return {"role": "assistant", "content": None, "tool_calls": made}


def test_an_export_that_grew_by_the_observations_of_its_tools_is_the_same_record(tmp_path):
    answer = called(
        ("call_abcdefghijkl", "tide_table", '{"harbour": "Whitby"}'),
        ("call_mnopqrstuvwx", "tide_table", '{"harbour": "Leith"}'),
        ("call_yzabcdefghij", "weather", '{"place": "Leith"}'),
    )
    rows = [
        observation(1, "AGENT", None, name="pilot"),
        observation(2, "GENERATION", 1, input=ASKED, output=answer, model="m"),
        observation(3, "TOOL", 1, name="tide_table", input={"harbour": "Leith"}, output="15:05"),
        observation(4, "TOOL", 1, name="tide_table", input={"harbour": "Whitby"}, output="14:20"),
        observation(5, "TOOL", 1, name="weather", input="Leith", output="rain"),
    ]
    whole = written(tmp_path / "x.json", {**OURS, "observations": rows})
    is_the_same_record(whole, *(written(tmp_path / f"{n}.json", {**OURS, "observations": rows[:n]}) for n in (5, 3)))

    bring(written(tmp_path / "half.json", {**OURS, "observations": rows[:2]}))
    bring(whole, is_update=True)

    assert calls("harbour-7") == [("tide_table", "done"), ("tide_table", "done"), ("weather", "done")]


def test_a_trace_without_observations_tells_what_was_asked_and_answered(tmp_path):
    row = {**OURS["trace"], "input": "High water at Whitby?", "output": '"At 14:20."'}

    bring(in_lines(tmp_path / "traces.jsonl", [row]))

    assert stored() == {"harbour-7": Counts(messages=2)}


def test_a_bad_observation_is_named_with_its_place(tmp_path):
    rows = [*OURS["observations"], {**observation(6, "TOOL", 1), "id": None}, "no object"]

    problems = bring(written(tmp_path / "x.json", {**OURS, "observations": rows}), is_strict=False)

    assert problems == [
        "the document, observations[5]: must be a span with id, a string of 1 to 100 characters; skipped",
        "the document, observations[6]: must be a Langfuse trace or observation (a JSON object); got str; skipped",
    ]
    assert stored() == {"harbour-7": EXPECTED}


def plain(value: Any) -> Any:
    """Read a text that holds JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def spoken(value: Any, role: str) -> Iterator[tuple[str, str]]:
    """Return who says what in an input or an output, by a reader of its own."""
    if isinstance(value, str):
        yield role, value
    elif isinstance(value, list):
        for item in value:
            yield from spoken(item, role)
    elif isinstance(value, dict):
        role = {"model": "assistant"}.get(value.get("role"), value.get("role") or role)
        if value.get("type") in ("tool_use", "function_call", "function_call_output"):
            return
        for name in ("messages", "contents", "output", "parts", "content", "text"):
            if isinstance(value.get(name), str | list | dict) and value[name] and "call_id" not in value:
                yield from spoken(value[name], role)
                return


def counted(export: dict[str, Any]) -> Counts:
    """Count an export: a history's words once, calls by observations or ids, tokens of the inner answers."""
    rows = export["observations"]
    answers = [row for row in rows if row["type"] == "GENERATION"]
    around = {row["parentObservationId"] for row in answers}
    words: Counter[tuple[str, str]] = Counter()
    for row in answers:
        here = Counter(
            pair
            for side, role in (("input", "user"), ("output", "assistant"))
            for pair in spoken(plain(row[side]), role)
            if pair[0] in ("user", "assistant") and pair[1].strip()
        )
        words |= here
    tools = sum(row["type"] == "TOOL" for row in rows)
    outputs = [plain(row["output"]) for row in answers if not tools]
    beside = [output.get("additional_kwargs", {}) for output in outputs if isinstance(output, dict)]
    ids = {call["id"] for message in beside for call in message.get("tool_calls", ())}
    inner = [row["usageDetails"] for row in answers if row["id"] not in around]
    return Counts(
        words.total(), tools or len(ids), sum(row["level"] == "ERROR" for row in rows),
        sum(usage.get("input", 0) for usage in inner), sum(usage.get("output", 0) for usage in inner),
    )  # fmt: skip


@pytest.mark.skipif(not TRACES, reason="recorded traces are not here")
def test_traces_of_seven_frameworks_come_out_as_they_were_counted():
    for path in TRACES:
        export = document(path)
        bring(path)

        assert (path.name, total()) == (path.name, counted(export))
        (key,) = stored()
        active = {row["parentObservationId"] for row in export["observations"] if row["type"] == "GENERATION"}
        named = {row["name"] for row in export["observations"] if row["type"] == "AGENT" and row["id"] in active}
        assert named <= agents(key)
        forget()


@pytest.mark.slow
@pytest.mark.skipif(not TRACES, reason="recorded traces are not here")
def test_traces_halved_and_shuffled_are_the_same_record(tmp_path):
    for path in TRACES:
        export = document(path)
        rows = export["observations"]
        in_time = sorted(rows, key=lambda row: row["startTime"])
        answer = next(number for number, row in enumerate(in_time, 1) if row["type"] == "GENERATION")
        half, mixed = in_time[: max(answer, len(rows) // 2)], random.Random(3).sample(rows, len(rows))
        is_the_same_record(
            path,
            written(tmp_path / "half.json", {**export, "observations": half}),
            written(tmp_path / "mixed.json", {**export, "observations": mixed}),
        )
