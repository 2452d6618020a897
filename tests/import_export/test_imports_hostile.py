"""What nobody should send: every format refuses it with words, or leaves it out and says where; nothing half done."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.core import principals
from conversations.core.errors import Conflict, SwitchboardError
from conversations.events import log
from conversations.import_export import detect_format
from conversations.import_export.dry_run import DryRun
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.models import Conversation, Event
from tests.support import tiers
from tests.support.imported import FRAMEWORKS, Counts, bring, document, forget, in_lines, stored, unpacked, written
from tests.support.live import ROOT

pytestmark = pytest.mark.django_db(transaction=True)
MESSAGE = {"source": "pilot", "type": "TextMessage", "content": "High water?"}
SPAN = {
    "name": "answer", "context": {"trace_id": "t" * 32, "span_id": "s" * 16}, "span_kind": "LLM", "parent_id": None,
    "start_time": "2026-01-02T10:00:00+00:00", "end_time": "2026-01-02T10:00:01+00:00", "status_code": "OK",
    "attributes": {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "High water?"},
}  # fmt: skip
OBSERVATION = {
    "id": "o1", "traceId": "t1", "type": "GENERATION", "startTime": "2026-01-02T10:00:00Z", "input": "High water?",
}  # fmt: skip
EVENT = {"author": "user", "content": {"parts": [{"text": "High water?"}]}, "id": "e1", "timestamp": 1.0}
SESSION = {"id": "s", "app_name": "a", "user_id": "u", "events": [EVENT]}
SAMPLE = {"id": "s", "epoch": 1, "messages": [{"role": "user", "content": "High water?"}]}
LOG = {"version": 2, "status": "success", "eval": {"task": "t", "eval_id": "e"}, "samples": [SAMPLE]}
OTLP_SPAN = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "x", "attributes": [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
    {"key": "gen_ai.prompt.0.content", "value": {"stringValue": "High water?"}}]}  # fmt: skip
OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": [OTLP_SPAN]}]}]}
DOCUMENTS: dict[str, Any] = {
    "autogen": {"messages": [MESSAGE]}, "spans": [SPAN], "adk": SESSION, "inspect": LOG, "otlp": OTLP,
    "langfuse": {"trace": {"id": "t1"}, "observations": [OBSERVATION]},
}  # fmt: skip
LINES: dict[str, Any] = {"autogen": MESSAGE, "spans": SPAN, "langfuse": OBSERVATION, "otlp": OTLP}


def tried(path: Path) -> str:
    """Import a file; return what it was refused for, if it was. Then nothing of it is there."""
    reason = ""
    try:
        bring(path, is_strict=False)
    except SwitchboardError as error:
        reason = error.message or "no reason"
    assert reason != "no reason"
    assert bool(reason) != Event.objects.exists()
    forget()
    return reason


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_cut_is_refused(tmp_path, name):
    text = json.dumps(DOCUMENTS[name])
    for keep in range(1, len(text), max(1, len(text) // 23)):
        path = tmp_path / "x.json"
        path.write_text(text[:keep])
        assert tried(path)


def test_a_mebibyte_of_brackets_is_refused(tmp_path):
    path = tmp_path / "x.json"
    for text in ("[" * (1 << 20), '{"messages":' * 90_000, "[" * 500_000 + "]" * 500_000):
        path.write_text(text)
        assert tried(path)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_value_that_is_a_mebibyte_of_brackets_is_refused_or_left_out(tmp_path, name):
    deep = "[" * (1 << 19) + "]" * (1 << 19)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(DOCUMENTS[name]).replace('"High water?"', deep))

    tried(path)

    path.write_text(json.dumps(DOCUMENTS[name]).replace('"High water?"', json.dumps(deep)))
    tried(path)


WRONG = (None, True, -1, 1e308, "", "\x00", "half \ud83d", [], [[]], {}, {"": None}, 1 << 70)


def variants(value: Any, wrong: Any) -> Any:
    """Return the value again and again, each time with another part of it replaced."""
    yield wrong
    if isinstance(value, dict):
        for name in value:
            yield from ({**value, name: inner} for inner in variants(value[name], wrong))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from ([*value[:number], inner, *value[number + 1 :]] for inner in variants(item, wrong))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_wrong_types_anywhere_break_no_reader(tmp_path, name):
    path = tmp_path / "x.json"
    for wrong in WRONG:
        for value in variants(DOCUMENTS[name], wrong):
            path.write_text(json.dumps(value))
            read_through(path)


def read_through(path: Path) -> None:
    """Read a file as an import does, storing nothing."""
    report = ImportReport(lambda _: None)
    with suppress(SwitchboardError):
        import_recordings(detect_format.recordings(path, report), DryRun(), report, progress=lambda *_: None)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["user", "tool", "LLM", "TOOL"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "type", "content", "role", "parts", "messages", "input", "output", "name"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(DOCUMENTS)), anything)
def test_no_content_breaks_a_reader(tmp_path_factory, name, value):
    text = json.dumps(DOCUMENTS[name]).replace('"High water?"', json.dumps(value))
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(text)

    read_through(path)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nul_and_lone_surrogates_are_read(tmp_path, name):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(DOCUMENTS[name]).replace("High water?", "High\\u0000 \\ud83d water?"))

    assert tried(path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", tiers.variants(LINES))
def test_one_bad_line_of_ten_thousand_is_named(tmp_path, name):
    rows = [json.loads(json.dumps(LINES[name])) for _ in range(10_000)]
    rows[6_999] = "{broken"
    path = in_lines(tmp_path / "x.jsonl", rows)

    (problem,) = bring(path, is_strict=False)

    assert problem.startswith("line 7000: must be JSON: ")
    before = Event.objects.count()
    with pytest.raises(CommandError, match=r"x\.jsonl was not imported: line 7000: must be JSON"):
        call_command("import", str(path), "--strict", "--dry-run")
    assert Event.objects.count() == before


def test_ids_that_are_used_twice_are_one_of_a_source_that_has_ids(tmp_path):
    bring(written(tmp_path / "spans.json", [SPAN, SPAN]))
    bring(written(tmp_path / "trace.json", {"trace": {"id": "t1"}, "observations": [OBSERVATION, OBSERVATION]}))
    bring(written(tmp_path / "chat.json", {"messages": [MESSAGE, MESSAGE]}))  # it has none: it was said twice

    assert stored() == {"t" * 32: Counts(messages=1), "t1": Counts(messages=1), "chat": Counts(messages=2)}


def test_sessions_of_one_name_are_several_conversations(tmp_path):
    bring(in_lines(tmp_path / "x.jsonl", [SESSION, {**SESSION, "user_id": "v"}, SESSION]))

    assert len(stored()) == 3


@pytest.mark.slow
def test_a_view_and_a_damaged_page_are_no_tables(tmp_path):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT x AS"
    columns = ("thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint")
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as database:
        database.execute(
            f"CREATE VIEW checkpoints AS {endless} thread_id, {','.join(f'x AS {c}' for c in columns[1:])} FROM n"
        )
    database.close()
    assert "unknown format" in tried(path)

    whole = unpacked("langgraph.sqlite.gz", tmp_path).read_bytes()
    for at in range(100, len(whole), len(whole) // 29):
        path.write_bytes(whole[:at] + b"\xff" * 64 + whole[at + 64 :])
        tried(path)
        path.write_bytes(whole[:at])
        tried(path)


def test_a_database_with_a_table_of_a_module_that_is_missing_is_read(tmp_path):
    path = unpacked("langgraph.sqlite.gz", tmp_path)
    bring(path)
    whole = stored()
    forget()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA writable_schema=1")
        made = "CREATE VIRTUAL TABLE vectors USING vec0(x)"
        database.execute("INSERT INTO sqlite_master VALUES('table','vectors','vectors',0,?)", [made])

    bring(path)

    assert stored() == whole


@pytest.mark.slow
def test_a_packed_file_that_is_damaged_anywhere_is_refused(tmp_path):
    path = tmp_path / "x.json.gz"
    packed = gzip.compress(json.dumps(DOCUMENTS["autogen"]).encode())
    for at in range(10, len(packed)):
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :])
        assert tried(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_compressed_in_another_way_is_refused(tmp_path, method):
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("header.json", json.dumps(LOG))
        file.writestr("samples/s_epoch_1.json", json.dumps(SAMPLE))

    assert "must be stored, deflated or compressed with zstd" in tried(path)


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59-01:00"]
)
def test_a_time_at_either_end_of_the_calendar_is_unknown(tmp_path, at):
    bring(in_lines(tmp_path / "x.jsonl", [{**MESSAGE, "created_at": at}, MESSAGE]))

    assert "created_at" not in json.loads(Event.objects.order_by("seq").values_list("body", flat=True)[1])


def test_a_database_that_is_compressed_says_what_to_do():
    with pytest.raises(SwitchboardError, match="must not be compressed again: unpack it first"):
        bring(FRAMEWORKS / "langgraph.sqlite.gz")


def test_the_command_names_the_file_and_the_line(tmp_path, capsys):
    path = in_lines(tmp_path / "chat.jsonl", [MESSAGE, {"type": "TextMessage"}, MESSAGE])

    call_command("import", str(path))

    assert "chat.jsonl, line 2: must be a message with type and content; skipped" in capsys.readouterr().err


def test_no_sample_is_claimed_by_two_formats(tmp_path):
    for name, value in DOCUMENTS.items():
        path = written(tmp_path / "x.json", value)
        source = detect_format.RecordingFile(path)
        fitting = {
            candidate.NAME
            for shape, samples in detect_format._samples(source)
            for candidate in detect_format.FORMATS
            if shape in candidate.READS and any(candidate.fits(sample) for sample in samples)
            and not hasattr(candidate, "IS_GENERAL")
        }  # fmt: skip
        assert (name, len(fitting)) == (name, 1)


def test_the_guide_and_the_command_name_every_format():
    guide = (ROOT / "docs/how-to/import-and-export.md").read_text()
    reference = " ".join((ROOT / "docs/reference/commands.md").read_text().split())

    assert [name for name in detect_format.NAMES if name not in guide] == []
    assert ", ".join(detect_format.NAMES) in reference


def test_an_update_adds_only_to_what_was_imported(tmp_path):
    path = written(tmp_path / "x.json", {"messages": [MESSAGE]})
    log.append([log.from_internal("x", {"event": "conversation.opened", "title": "Live"}, principals.SYSTEM)])

    with pytest.raises(Conflict, match="'x' was not created by an import, so nothing can be added to it"):
        bring(path, is_update=True)

    assert Event.objects.count() == 1


def test_an_update_that_fails_adds_nothing(tmp_path):
    messages = document(FRAMEWORKS / "autogen_result.json")["messages"]
    bring(in_lines(tmp_path / "x.jsonl", messages[:2]))
    before = Event.objects.count()

    with pytest.raises(SwitchboardError, match="line 6"):
        bring(in_lines(tmp_path / "x.jsonl", [*messages, "{broken"]), is_update=True)

    assert Event.objects.count() == before
    bring(in_lines(tmp_path / "x.jsonl", messages), is_update=True)
    assert stored() == {"x": Counts(3, 2, 1, 116, 19)}
    assert Conversation.objects.get(key="x").head_seq == Event.objects.count()
