"""LangGraph checkpoints: a database that LangGraph's own saver wrote, read without running anything of it."""

from __future__ import annotations

import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.support.imported import Counts, agents, bring, calls, is_the_same_record, record, stored, unpacked

pytestmark = pytest.mark.django_db(transaction=True)
EXPECTED = Counts(messages=5, calls=2, errors=1, input_tokens=111, output_tokens=20)
TABLE = (
    "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT DEFAULT '', checkpoint_id TEXT,"
    " parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB)"
)


@pytest.fixture
def tides(tmp_path: Path) -> Path:
    """A thread of two turns."""
    return unpacked("langgraph.sqlite.gz", tmp_path)


def saved(path: Path, *rows: tuple[str, str, str, str, bytes]) -> Path:
    """Write checkpoints: thread, graph, id, kind and value."""
    with sqlite3.connect(path) as database:
        database.execute(TABLE)
        statement = "INSERT INTO checkpoints (thread_id,checkpoint_ns,checkpoint_id,type,checkpoint) VALUES (?,?,?,?,?)"
        database.executemany(statement, rows)
    database.close()
    return path


def packed(**channels: Any) -> bytes:
    """Serialize a checkpoint as LangGraph does."""
    values = {"v": 4, "ts": "2026-01-02T10:00:00+00:00", "id": "1", "channel_values": channels}
    return JsonPlusSerializer().dumps_typed(values)[1]


def test_a_thread_becomes_its_conversation(tides):
    bring(tides)

    assert stored() == {"tides": EXPECTED}
    assert agents("tides") == {"pilot"}
    assert calls("tides") == [("tide_table", "done"), ("tide_table", "failed")]
    assert [path.name for path in tides.parent.iterdir()] == [tides.name]  # nothing was written beside it


def test_the_saver_itself_says_the_same(tides):
    database = sqlite3.connect(tides)
    rows = database.execute("SELECT type, checkpoint FROM checkpoints ORDER BY checkpoint_id").fetchall()
    database.close()
    messages = JsonPlusSerializer().loads_typed(rows[-1])["channel_values"]["messages"]
    answers = [message for message in messages if message.type == "ai"]

    bring(tides)

    assert stored()["tides"] == Counts(
        sum(message.type in ("human", "ai") and bool(message.content) for message in messages),
        sum(len(message.tool_calls) for message in answers),
        sum(message.type == "tool" and message.status == "error" for message in messages),
        sum(message.usage_metadata["input_tokens"] for message in answers),
        sum(message.usage_metadata["output_tokens"] for message in answers),
    )


def test_a_database_that_grew_is_the_same_record(tides, tmp_path):
    half = tmp_path / "half.sqlite"
    half.write_bytes(tides.read_bytes())
    with sqlite3.connect(half) as database:
        border = "(SELECT checkpoint_id FROM checkpoints ORDER BY 1 LIMIT 1 OFFSET 3)"
        database.execute(f"DELETE FROM checkpoints WHERE checkpoint_id>{border}")
    database.close()

    is_the_same_record(tides, half)


def test_what_is_being_written_is_read_too(tides):
    writer = sqlite3.connect(tides, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    late = packed(messages=[HumanMessage("Still there?", id="late")])
    writer.execute("INSERT INTO checkpoints VALUES ('late','','9',NULL,'msgpack',?,'{}')", [late])

    bring(tides)

    writer.close()
    assert stored() == {"tides": EXPECTED, "late": Counts(messages=1)}


def test_json_inner_graphs_and_messages_without_ids_are_read(tmp_path):
    lc = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"]}
    values = {"channel_values": {"messages": [{**lc, "kwargs": {"content": "Hello?", "type": "human"}}]}}
    inner = AIMessage(
        [{"type": "text", "text": "Hi."}, {"type": "tool_use", "id": "c", "name": "t", "input": {}}], id="2"
    )
    inner.tool_calls = [{"name": "t", "args": {}, "id": "c", "type": "tool_call"}]
    result = ToolMessage("done", tool_call_id="c", id="3")
    rows = [
        ("x", "", "1", "json", json.dumps(values).encode()),
        ("x", "research:1f", "2", "msgpack", packed(messages=[inner, result], files={"a": b"b"})),
    ]

    bring(saved(tmp_path / "x.db", *rows))

    assert stored() == {"x": Counts(messages=2, calls=1)}
    assert agents("x") == {"research"}


def at(second: int, *messages: Any) -> tuple[str, str, str, str, bytes]:
    """Write a checkpoint of that time."""
    stamp = f"2026-01-02T10:00:{second:02}+00:00"
    value = {"v": 4, "ts": stamp, "id": str(second), "channel_values": {"messages": list(messages)}}
    return ("x", "", str(second), *JsonPlusSerializer().dumps_typed(value))


def test_a_thread_whose_older_checkpoints_were_pruned_is_the_same_record(tmp_path):
    call = {"name": "tide_table", "args": {}, "id": "c", "type": "tool_call"}
    question, answer = HumanMessage("High water?", id="a"), AIMessage("I look.", id="b", tool_calls=[call])
    answer.usage_metadata = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    result = ToolMessage("14:20", tool_call_id="c", id="d")
    rows = [at(1, question), at(5, question, answer), at(9, question, answer, result)]
    whole = saved(tmp_path / "x.db", *rows)
    with sqlite3.connect(whole) as database:
        database.execute("CREATE TABLE writes (thread_id, checkpoint_id, task_path, type, value)")
        written = JsonPlusSerializer().dumps_typed([answer])
        database.execute("INSERT INTO writes VALUES ('x', '5', '~__pregel_pull, pilot', ?, ?)", written)
    database.close()
    bring(whole)
    before = record()

    bring(saved(tmp_path / "y.db", rows[2]), is_update=True)

    assert record() == before
    assert (stored(), agents("x")) == ({"x": Counts(2, 1, 0, 5, 2)}, {"pilot"})


@pytest.mark.parametrize("names", [("x 1", "x:1"), ("Ада", "Ия"), ("n" * 120, "n" * 121)])
def test_threads_whose_names_are_alike_in_addresses_stay_apart(tmp_path, names):
    rows = [(name, "", "1", "msgpack", packed(messages=[HumanMessage(f"I am {name}", id=name)])) for name in names]
    bring(saved(tmp_path / "x.db", rows[1]))
    bring(saved(tmp_path / "y.db", *rows), is_update=True)

    assert list(stored().values()) == [Counts(messages=1)] * 2


class Bomb:
    """Something that leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self._path,))


def test_nothing_of_a_database_is_run(tmp_path):
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    call = msgspec.msgpack.encode(["os", "mkdir", str(tmp_path / "ran")])
    classes = msgspec.msgpack.Ext(0, call)
    good = ("x", "", "3", "msgpack", packed(messages=[HumanMessage("Hello?", id="1")]))
    evil = msgspec.msgpack.encode({"channel_values": {"messages": [classes]}})

    problems = bring(
        saved(tmp_path / "x.db", ("x", "", "1", "pickle", bomb), ("x", "", "2", "msgpack", evil), good), is_strict=False
    )

    assert problems == ["checkpoint 1: must be msgpack or JSON; 'pickle' is never unpacked; skipped"]
    assert stored() == {"x": Counts(messages=1)}
    assert not (tmp_path / "ran").exists()


def test_damaged_values_are_named_with_their_place(tmp_path):
    deep = msgspec.msgpack.encode(None)
    for _ in range(3000):
        deep = msgspec.msgpack.encode(msgspec.msgpack.Ext(5, deep))
    whole = packed(messages=[HumanMessage("Hello?", id="1")])
    rows = [("x", "", "1", "msgpack", whole[:-5]), ("x", "", "2", "msgpack", deep), ("x", "", "3", "msgpack", whole)]

    problems = bring(saved(tmp_path / "x.db", *rows), is_strict=False)

    assert [problem.partition(":")[0] for problem in problems] == ["checkpoint 1", "checkpoint 2"]
    assert stored() == {"x": Counts(messages=1)}
