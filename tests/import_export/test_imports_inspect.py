"""Inspect's logs: archives and JSON as `inspect_ai` 0.3.285 wrote them, read without it."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from conversations.core.errors import Invalid, TooLarge
from conversations.import_export import archive
from tests.support.imported import (
    FRAMEWORKS,
    Counts,
    agents,
    bring,
    calls,
    document,
    is_the_same_record,
    stored,
    written,
)

pytestmark = pytest.mark.django_db(transaction=True)
LOG, JSON = FRAMEWORKS / "inspect.eval", FRAMEWORKS / "inspect.json.gz"
# What inspect_ai's own reader says of both: read_eval_log(path, resolve_attachments=True).
WHITBY, NOWHERE = Counts(3, 1, 0, 61, 16), Counts(3, 1, 1, 52, 14)


def repacked(path: Path, log: dict[str, Any], *, method: int = zipfile.ZIP_DEFLATED, samples: int = 9) -> Path:
    """Write a log as an archive."""
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("_journal/start.json", json.dumps({"version": 2, "eval": log["eval"], "plan": {}}))
        for sample in log["samples"][:samples]:
            file.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        file.writestr("header.json", json.dumps({name: value for name, value in log.items() if name != "samples"}))
    return path


def test_an_archive_becomes_a_conversation_for_each_sample():
    bring(LOG)

    assert stored() == {"task-RqHQv2L2-whitby": WHITBY, "task-RqHQv2L2-nowhere": NOWHERE}
    assert agents("task-RqHQv2L2-whitby") == {"assistant"}
    assert calls("task-RqHQv2L2-nowhere") == [("tide_table", "failed")]


def test_json_stored_deflated_and_half_a_log_are_the_same_record(tmp_path):
    log = document(JSON)
    copy = tmp_path / "x.json"
    copy.write_bytes(gzip.decompress(JSON.read_bytes()))
    is_the_same_record(
        copy,
        repacked(tmp_path / "deflated.eval", log),
        repacked(tmp_path / "stored.eval", log, method=zipfile.ZIP_STORED),
        repacked(tmp_path / "half.eval", log, samples=1),
        written(tmp_path / "mixed.json", {**log, "samples": log["samples"][::-1]}),
    )


def test_attachments_errors_and_samples_without_events(tmp_path):
    log, key = document(JSON), "0" * 32
    sample = {
        "id": 7, "epoch": 2, "events": [], "attachments": {key: "High water at Whitby?"},
        "messages": [{"role": "user", "content": f"attachment://{key}"}, {"role": "assistant", "content": [
            {"type": "reasoning", "reasoning": "Look it up."}, {"type": "text", "text": "At 14:20."}]}],
        "model_usage": {"m": {"input_tokens": 5, "input_tokens_cache_read": 10, "output_tokens": 2}},
        "error": {"message": "out of time", "traceback": ""},
    }  # fmt: skip

    bring(written(tmp_path / "x.json", {**log, "samples": [sample]}))

    assert stored() == {"task-Y4a8dd3B-7-2-73f16aa909007a48": Counts(2, 0, 1, 15, 2)}


def test_without_zstandard_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(Invalid, match="compressed with zstd; to read it, run: pip install zstandard"):
        bring(LOG)


def test_bad_samples_are_named_with_their_place(tmp_path):
    log = document(JSON)
    log["samples"][1:1] = [7, {"id": "x", "messages": [{"role": "pilot"}, 8]}]

    problems = bring(written(tmp_path / "x.json", log), is_strict=False)

    assert [problem.partition(":")[0] for problem in problems] == [
        "samples[1]", "samples[2].messages[0]", "samples[2].messages[1]",
    ]  # fmt: skip
    assert set(stored().values()) == {WHITBY, NOWHERE}


def test_a_bad_entry_is_named(tmp_path):
    path = repacked(tmp_path / "x.eval", document(JSON))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("samples/broken.json", "{")

    (problem,) = bring(path, is_strict=False)

    assert problem.startswith("samples/broken.json: must be JSON: ")
    assert set(stored().values()) == {WHITBY, NOWHERE}


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_ENTRY", 1 << 20)
    path = repacked(tmp_path / "x.eval", document(JSON))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("samples/bomb.json", b"[" * (4 << 20))

    with pytest.raises(TooLarge, match=r"samples/bomb.json must be at most 1 MiB, unpacked"):
        bring(path)

    assert stored() == {}


def test_a_bomb_of_zstd_that_lies_about_its_size_is_refused(tmp_path, monkeypatch):
    import zstandard

    monkeypatch.setattr(archive, "MAX_ENTRY", 1 << 20)
    path = repacked(tmp_path / "x.eval", document(JSON), method=zipfile.ZIP_STORED)
    bomb = zstandard.ZstdCompressor().compress(b"[" * (64 << 20))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("samples/bomb.json", bomb)
    text = path.read_bytes()
    at = text.rindex(b"PK\x01\x02", 0, text.rindex(b"samples/bomb.json"))
    path.write_bytes(text[: at + 10] + struct.pack("<H", 93) + text[at + 12 :])

    with pytest.raises(TooLarge, match=r"samples/bomb.json must be at most 1 MiB, unpacked"):
        bring(path)


@pytest.mark.parametrize("keep", [30, 2000, 9000])
def test_a_cut_archive_is_refused_whole(tmp_path, keep):
    path = tmp_path / "x.eval"
    path.write_bytes(LOG.read_bytes()[:keep])

    with pytest.raises(Invalid, match="the archive is damaged"):
        bring(path)

    assert stored() == {}


def test_a_sample_that_is_named_as_the_epoch_of_another_stays_apart(tmp_path):
    log = document(JSON)
    spoken = [{"role": "user", "content": "1"}], [{"role": "user", "content": "2"}]
    samples = [{"id": "a", "epoch": 2, "messages": spoken[0]}, {"id": "a-2", "epoch": 1, "messages": spoken[1]}]
    bring(written(tmp_path / "x.json", {**log, "samples": samples[1:]}))
    bring(written(tmp_path / "x.json", {**log, "samples": samples}), is_update=True)

    assert list(stored().values()) == [Counts(messages=1)] * 2


def test_a_damaged_archive_never_breaks_the_reader(tmp_path):
    text, path = LOG.read_bytes(), tmp_path / "x.eval"
    for at in range(0, len(text), 97):
        path.write_bytes(text[:at] + bytes([text[at] ^ 0x55]) + text[at + 1 :])
        try:
            bring(path, is_strict=False)
        except (Invalid, TooLarge):
            assert stored() == {}
        else:
            break  # it was in what is not read: one that is imported is enough


def test_an_archive_of_something_else_is_refused_by_its_content(tmp_path):
    path = tmp_path / "x.eval"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("word/document.xml", "<w/>")
    path.write_bytes(buffer.getvalue())

    with pytest.raises(Invalid, match="archive of content in an unknown format"):
        bring(path)
