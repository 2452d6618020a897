"""AutoGen: results of runs, states of teams, messages on lines, and chats that were printed in notebooks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from conversations.core.errors import Invalid
from conversations.models import Event
from tests.support.imported import (
    FRAMEWORKS,
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
RESULT = FRAMEWORKS / "autogen_result.json"
EXPECTED = Counts(messages=3, calls=2, errors=1, input_tokens=116, output_tokens=19)
NOTEBOOKS = sorted((THEIRS / "autogen-notebook-outputs").glob("*.json"))


def test_a_result_becomes_its_conversation():
    bring(RESULT)

    assert stored() == {"autogen_result": EXPECTED}
    assert agents("autogen_result") == {"pilot", "master"}
    assert calls("autogen_result") == [("tide_table", "done"), ("tide_table", "failed")]


def test_a_state_lines_and_a_half_are_the_same_record(tmp_path):
    result = document(RESULT)
    is_the_same_record(
        written(tmp_path / "x.json", result),
        written(tmp_path / "x.db", document(FRAMEWORKS / "autogen_state.json.gz")),
        in_lines(tmp_path / "x.jsonl", result["messages"]),
        in_lines(tmp_path / "x.ndjson", result["messages"][:2]),
    )


def test_a_state_without_a_thread_is_a_conversation_for_each_agent(tmp_path):
    state = document(FRAMEWORKS / "autogen_state.json.gz")
    for inner in state["agent_states"].values():
        inner.pop("message_thread", None)

    bring(written(tmp_path / "x.json", state))

    assert stored() == {"x-pilot": Counts(messages=2, calls=2, errors=1), "x-master": Counts(messages=3)}


def test_a_handoff_and_events_are_told_apart_from_words(tmp_path):
    message = {"source": "pilot", "models_usage": None, "metadata": {}}
    rows = [
        {**message, "type": "ThoughtEvent", "content": "Who knows tides?"},
        {**message, "type": "HandoffMessage", "content": "Over to you.", "target": "master"},
        {**message, "type": "ModelClientStreamingChunkEvent", "content": "Ov"},
        {**message, "type": "MultiModalMessage", "content": ["Look:", {"data": "…"}]},
    ]

    bring(in_lines(tmp_path / "x.jsonl", rows))

    assert stored() == {"x": Counts(messages=2)}
    assert Event.objects.filter(kind="agent.handoff").count() == 1


def test_a_bad_message_is_named_with_its_place(tmp_path):
    result = document(RESULT)
    result["messages"][1:1] = [None, {"type": "TextMessage"}]

    problems = bring(written(tmp_path / "x.json", result), is_strict=False)

    assert problems == [
        "messages[1]: must be a message: a JSON object; got NoneType; skipped",
        "messages[2]: must be a message with type and content; skipped",
    ]
    assert stored() == {"x": EXPECTED}


YELLOW, GREEN, OFF = "\x1b[33m", "\x1b[32m", "\x1b[0m"
LINE = "-" * 80
PRINTED = f"""{YELLOW}ida{OFF} (to pilot):

High water at Whitby?
pilot (to ida):
is how an answer begins.

{LINE}
{YELLOW}pilot{OFF} (to ida):

{GREEN}***** Suggested tool call (call_1): tide_table *****{OFF}
Arguments:{" "}
{{"harbour": "Whitby"}}
{GREEN}****************************************************{OFF}

{LINE}
\x1b[35m
>>>>>>>> EXECUTING FUNCTION tide_table...{OFF}
{YELLOW}ida{OFF} (to pilot):

{YELLOW}ida{OFF} (to pilot):

{GREEN}***** Response from calling tool (call_1) *****{OFF}
Error: no such harbour
{GREEN}**********************************************{OFF}

{LINE}
{YELLOW}pilot{OFF} (to ida):

At 14:20.

{LINE}
"""


def notebook(*texts: str) -> dict[str, Any]:
    """Write a notebook with a cell for each text."""
    cells = [
        {"cell_type": "code", "outputs": [{"output_type": "stream", "name": "stdout", "text": text.splitlines(True)}]}
        for text in texts
    ]
    return {"cells": [{"cell_type": "markdown", "source": []}, *cells], "nbformat": 4, "metadata": {}}


def test_a_printed_chat_becomes_its_conversation(tmp_path):
    bring(written(tmp_path / "x.ipynb", notebook("hello\n", PRINTED)))

    assert stored() == {"x-2": Counts(messages=2, calls=1, errors=1)}
    assert agents("x-2") == {"ida", "pilot"}


def test_outputs_and_notebooks_and_halves_are_the_same_record(tmp_path):
    half = PRINTED[: PRINTED.index(f"{YELLOW}pilot{OFF} (to ida):\n\nAt")]
    outputs = [
        {"cell": 1, "output_type": "stream", "name": "stdout", "text": text} for text in (half, PRINTED[len(half) :])
    ]
    is_the_same_record(
        written(tmp_path / "x.json", notebook(PRINTED)),
        written(tmp_path / "x.ipynb", outputs),
        written(tmp_path / "x.jsonl", notebook(half)),
    )


def test_a_notebook_without_a_chat_is_refused(tmp_path):
    with pytest.raises(Invalid, match="must contain a chat printed by AutoGen"):
        bring(written(tmp_path / "x.ipynb", notebook("42\n")))


def counted(outputs: list[dict[str, Any]]) -> Counts:
    """Count what was printed, cell by cell, line by line."""
    by_cell: dict[int, str] = {}
    for output in outputs:
        if output["output_type"] == "stream" and output["name"] == "stdout":
            by_cell[output["cell"]] = by_cell.get(output["cell"], "") + output["text"]
    words = tools = errors = 0
    for text in by_cell.values():
        for chunk in re.split(r"\x1b\[33m[^\x1b\n]+\x1b\[0m \(to [^\n]+\):\n", text)[1:]:
            lines = re.sub(r"\x1b\[[0-9;]*m", "", chunk).split("\n")
            lines = lines[: lines.index(LINE)] if LINE in lines else lines
            has_words = is_within = False
            for number, line in enumerate(lines):
                if line.startswith(("***** Suggested", "***** Response")):
                    is_within = True
                    tools += line.startswith("***** Suggested")
                    errors += line.startswith("***** Response") and lines[number + 1].startswith("Error:")
                elif is_within:
                    is_within = not re.fullmatch(r"\*{5,}", line)
                else:
                    has_words = has_words or bool(line.strip())
            words += has_words
    return Counts(words, tools, errors)


@pytest.mark.slow
@pytest.mark.skipif(not NOTEBOOKS, reason="recorded notebooks are not here")
def test_recorded_notebooks_come_out_as_they_were_counted():
    for path in NOTEBOOKS:
        bring(path, is_strict=False)
        assert (path.name, total()) == (path.name, counted(document(path)))
        forget()
