"""Session files that are rewritten while they are followed, lines too long, a last line without its end."""

import json
import os

import pytest

from conversations.import_export import session_follower
from conversations.import_export.session_follower import SessionFollower
from tests.import_export.test_session_files import CLAUDE, CODEX, Published, followed, words


@pytest.mark.parametrize("is_removed", [False, True])
def test_another_session_that_is_longer_is_read_from_its_beginning(tmp_path, is_removed):
    """Written over the old one or, once that is removed, made anew: with its inode, which file systems give again."""
    whole, published, path = Published(), Published(), tmp_path / "session.jsonl"
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    other = b"".join(lines).replace(b"test_session", b"other").replace(b"msg_", b"of_the_other_")
    (tmp_path / "other").write_bytes(other)
    followed(tmp_path / "other", whole)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    follower = followed(path, published)
    before = set(published.payloads)

    if is_removed:
        path.unlink()
    path.write_bytes(other)
    follower.poll()
    follower.settle()

    assert {id_: published.payloads[id_] for id_ in published.payloads.keys() - before} == whole.payloads


def test_a_session_that_is_rewritten_with_more_before_it_is_read_again(tmp_path):
    whole, published, path = Published(), Published(), tmp_path / "session.jsonl"
    followed(CLAUDE, whole)
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[3:]))
    follower = followed(path, published)

    path.write_bytes(b"".join(lines))
    follower.poll()
    follower.settle()

    assert published.payloads.keys() >= whole.payloads.keys()


def test_a_line_that_is_too_long_is_skipped_and_read_once(tmp_path, monkeypatch):
    monkeypatch.setattr(session_follower, "MAX_LINE", 1 << 20)
    published, skipped, path = Published(), list[str](), tmp_path / "long.jsonl"
    path.write_bytes(json.dumps(CODEX[0]).encode() + b"\n" + b"x" * (3 << 20))
    follower = SessionFollower(path, published, skipped.append)
    follower.poll()
    read = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *where: read.append(where[1]) or pread(*where))

    follower.poll()
    assert sum(read) < 3 << 20  # what was searched is not read again
    with path.open("ab") as file:
        file.write(b"x\n" + json.dumps(words("assistant", "Done.")).encode() + b"\n")
    follower.poll()

    assert [payload.get("text") for payload in published.payloads.values()][-1] == "Done."
    assert skipped == ["long.jsonl, line 2: must be at most 1 MiB; skipped"]


@pytest.mark.parametrize(("end", "expected"), [("", []), ('{"type": ', ["line 3: must be JSON"])])
def test_the_last_line_of_a_whole_file_may_be_without_its_end(tmp_path, end, expected):
    published, skipped, path = Published(), list[str](), tmp_path / "whole.jsonl"
    text = "\n".join([json.dumps(CODEX[0]), json.dumps(words("assistant", "Done."))])
    path.write_text(text + ("\n" + end if end else ""))
    follower = SessionFollower(path, published, skipped.append)

    follower.poll(is_whole=True)
    follower.settle()

    assert [payload.get("text") for payload in published.payloads.values()][-1] == "Done."
    assert [line.partition(", ")[2].partition(" in ")[0][: len("line 3: must be JSON")] for line in skipped] == expected
