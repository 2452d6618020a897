"""Files that are not UTF-8, and lines that a crash filled with NULs: what is wrong is named, what is good is read."""

import gzip
import json

import pytest

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.recording import decoded
from conversations.import_export.session_follower import SessionFollower
from tests.import_export.test_session_files import CODEX, Published, words

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Grüße"}]
LINES = "\r\n".join(json.dumps(line, ensure_ascii=False) for line in CHAT) + "\r\n"


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("text", [LINES, json.dumps(CHAT)], ids=["lines", "document"])
def test_a_file_in_another_unicode_encoding_is_refused_whole(tmp_path, text, encoding, is_packed):
    path = tmp_path / "x.json"
    raw = (text if encoding != "utf-16-be" else "\ufeff" + text).encode(encoding)
    path.write_bytes(gzip.compress(raw) if is_packed else raw)

    for read in (RecordingFile(path).is_document, RecordingFile(path).document, lambda: [*RecordingFile(path).lines()]):
        with pytest.raises(Invalid, match="must be UTF-8; it is UTF-16 or UTF-32"):
            read()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('"a"'.encode("utf-16"), "must be UTF-8; it is UTF-16 or UTF-32"),
        (b'{"a": "caf\xe9"}', "can't decode byte 0xe9"),
        ('{"a": 1}'.encode("utf-16-le"), "must be JSON"),
        ('{"a": 1}'.encode("utf-32-be"), "must be JSON"),
    ],
)
def test_no_encoding_is_guessed(raw, expected):
    with pytest.raises(Invalid, match=expected):
        decoded(raw)


def test_a_mark_before_the_text_is_no_part_of_it():
    assert decoded(b"\xef\xbb\xbf[1]") == [1]


def test_a_line_behind_the_nuls_of_a_crash_is_read(tmp_path):
    lines = [json.dumps(line).encode() for line in (CODEX[0], words("user", "before"), words("assistant", "after"))]
    path, published, skipped = tmp_path / "rollout.jsonl", Published(), list[str]()
    path.write_bytes(b"\n".join([*lines[:2], b"\0" * 1000 + lines[2]]) + b"\n")

    SessionFollower(path, published, skipped.append).poll()

    texts = [payload.get("content", payload.get("text")) for payload in published.payloads.values()]
    assert (texts[1:], skipped) == (["before", "after"], [])
