"""Sessions of Google's ADK: as JSON, in the databases of both session services, and as eval sets."""

from __future__ import annotations

import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from conversations.core.errors import Invalid
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
    unpacked,
    written,
)

pytestmark = pytest.mark.django_db(transaction=True)
SESSION = FRAMEWORKS / "adk_session.json"
EXPECTED = Counts(messages=3, calls=2, errors=1, input_tokens=120, output_tokens=21)
TIDES, OTHER = "tides-1-82e5f685debf8f57", "tides-2-483f718284ff49bc"  # with the digest of app, user and session
BOTH = {TIDES: EXPECTED, OTHER: Counts(messages=1, errors=1)}
SESSIONS = sorted((THEIRS / "adk-sessions").glob("*.json"))


def old_database(path: Path) -> Path:
    """Write a session as ADK did before 1.22: columns of their own, and actions pickled."""

    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (path.with_name("ran"),))

    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, author TEXT,"
        " actions BLOB, timestamp DATETIME, content TEXT, usage_metadata TEXT, error_code TEXT, error_message TEXT)"
    )
    for event in document(SESSION)["events"]:
        row = [event["id"], "harbour", "ida", "tides-1", "i", event["author"], pickle.dumps(Bomb())]
        usage = event.get("usageMetadata")
        row += [f"2026-01-01 00:00:0{event['id'][1]}.000000", json.dumps(event["content"])]
        row += [usage and json.dumps(usage), None, None]
        database.execute(f"INSERT INTO events VALUES ({','.join('?' * len(row))})", row)
    database.commit()
    database.close()
    return path


def test_a_session_becomes_its_conversation():
    bring(SESSION)

    assert stored() == {TIDES: EXPECTED}
    assert agents(TIDES) == {"harbour_master", "tide_reader"}
    assert calls(TIDES) == [("transfer_to_agent", "done"), ("tide_table", "failed")]


@pytest.mark.parametrize("name", ["adk_sqlite.db.gz", "adk_database.db.gz"])
def test_a_database_holds_the_same_sessions(tmp_path, name):
    bring(unpacked(name, tmp_path))

    assert stored() == BOTH
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        name.removesuffix(".gz")
    ]  # nothing was written beside it


def test_an_old_database_is_read_and_nothing_is_unpickled(tmp_path):
    bring(old_database(tmp_path / "x.db"))

    assert stored() == {TIDES: EXPECTED}
    assert not (tmp_path / "ran").exists()


def test_a_session_of_another_user_changes_nothing_of_the_first(tmp_path):
    first = document(SESSION)
    other = {**first, "userId": "alma", "events": [{**first["events"][0], "content": {"parts": [{"text": "secret"}]}}]}
    bring(in_lines(tmp_path / "x.jsonl", [first]))
    bring(in_lines(tmp_path / "x.jsonl", [other, first]), is_update=True)

    assert stored().pop(TIDES) == EXPECTED
    assert sorted(stored().values()) == [Counts(messages=1), EXPECTED]


def test_cases_of_one_name_are_those_of_their_eval_sets(tmp_path):
    turns = {name: {"user_content": {"parts": [{"text": f"Hello {name}"}]}} for name in ("a", "b")}
    cases = {name: [{"eval_id": "c", "conversation": [turn]}] for name, turn in turns.items()}
    sets = [{"eval_set_id": name, "eval_cases": case} for name, case in cases.items()]
    bring(in_lines(tmp_path / "x.jsonl", sets))
    bring(in_lines(tmp_path / "x.jsonl", sets[::-1]), is_update=True)

    assert list(stored().values()) == [Counts(messages=1)] * 2


def test_json_lines_halves_and_databases_are_the_same_record(tmp_path):
    session = document(SESSION)
    in_underlines = json.loads(json.dumps(session).replace("functionCall", "function_call"))
    is_the_same_record(
        written(tmp_path / "x.json", session),
        in_lines(tmp_path / "x.jsonl", [in_underlines]),
        written(tmp_path / "half.json", {**session, "events": session["events"][:3]}),
    )


def test_a_bad_event_is_named_with_its_place(tmp_path):
    session = document(SESSION)
    session["events"][1:1] = [7, {"content": {}}]

    problems = bring(written(tmp_path / "x.json", session), is_strict=False)

    assert problems == [
        "events[1]: must be an event: a JSON object; got int; skipped",
        "events[2]: must be an event with an author; skipped",
    ]
    assert stored() == {TIDES: EXPECTED}


def test_a_bad_row_is_named_with_its_place(tmp_path):
    path = unpacked("adk_sqlite.db.gz", tmp_path)
    database = sqlite3.connect(path)
    database.execute("UPDATE events SET event_data='{broken' WHERE session_id='tides-2' AND id='e1'")
    database.commit()
    database.close()

    (problem,) = bring(path, is_strict=False)

    assert problem.startswith("events, row 7: must be JSON: ")
    assert stored() == {TIDES: EXPECTED, OTHER: Counts(errors=1)}


def counted(value: dict[str, Any]) -> Counts:
    """Count a session or an eval set by itself."""
    words = tools = 0
    contents = [event["content"] for event in value.get("events", ())]
    for case in value.get("eval_cases", ()):
        for turn in case["conversation"]:
            contents += [turn["user_content"], turn["final_response"]]
            tools += len((turn.get("intermediate_data") or {}).get("tool_uses", ()))
    for content in filter(None, contents):
        words += any((part.get("text") or "").strip() for part in content["parts"])
        tools += sum(bool(part.get("function_call")) for part in content["parts"])
    return Counts(words, tools)


@pytest.mark.skipif(not SESSIONS, reason="recorded sessions are not here")
def test_recorded_sessions_come_out_as_they_were_counted():
    refused = set()
    for path in SESSIONS:
        try:
            bring(path)
        except Invalid:
            refused.add(path.name)
        else:
            assert (path.name, total()) == (path.name, counted(document(path)))
            forget()

    assert refused == {
        "home_automation_agent__simple_test2.test.json",  # expectations of a test, which nobody said
        "trip_planner_agent__trip_inquiry.test.json",
        "trip_planner_agent__initial.session.json",  # a session without events
    }
