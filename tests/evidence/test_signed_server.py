"""A real server signs its record, says so to everybody, and hands out evidence to who may export."""

import subprocess
import sys
import urllib.error
import urllib.request
import zipfile

import pytest

from conversations.evidence import notes
from tests.support.doors import Caller
from tests.support.live import Server, until


def fetch(server: Server, path: str, caller: Caller | None = None) -> tuple[int, bytes]:
    """Read what is not JSON; return its status and its bytes."""
    request = urllib.request.Request(f"{server.url}{path}")
    if caller is not None:
        request.add_header("Authorization", f"Bearer {caller.token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.fixture
def signed(door_server: Server, callers: dict[str, Caller]) -> dict[str, Caller]:
    """The callers, once a conversation is there and the record is signed."""
    payload = {"event": "log", "message": "signed", "conversation_id": "evidence-served"}
    assert callers["admin"].publish("stream:evidence-served", payload).status == 201
    until(lambda: fetch(door_server, "/checkpoint")[0] == 200, within=120)
    return callers


def test_everybody_reads_the_checkpoint_and_its_keys(door_server, signed):
    note = notes.parse(fetch(door_server, "/checkpoint")[1].decode())
    keys = [notes.parse_key(line) for line in fetch(door_server, "/checkpoint/keys")[1].decode().splitlines()]

    assert [key.algorithm for key in notes.verified(note, keys)] == [1, 6]
    assert fetch(door_server, "/checkpoint/other")[0] == 404


def test_who_may_export_gets_evidence_and_others_do_not(door_server, signed, tmp_path):
    path = "/api/v1/conversations/evidence-served/evidence"

    assert signed["viewer"].get(path).status == 403
    status, content = fetch(door_server, path, signed["auditor"])
    (tmp_path / "e.zip").write_bytes(content)
    zipfile.ZipFile(tmp_path / "e.zip").extract("verify.py", tmp_path)
    command = [sys.executable, "-I", "-S", "-X", "utf8", str(tmp_path / "verify.py"), str(tmp_path / "e.zip")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={}, cwd="/")

    assert (status, done.returncode) == (200, 0), done.stdout
    assert "OK: 1 conversation, nothing was changed" in done.stdout


def test_a_filter_gives_evidence_of_what_matches(door_server, signed, tmp_path):
    path = "/api/v1/evidence?q=evidence-served"

    assert signed["viewer"].get(path).status == 403
    assert fetch(door_server, "/api/v1/evidence?q=nothing-like-it", signed["auditor"])[0] == 404
    assert fetch(door_server, "/api/v1/evidence", signed["auditor"])[0] == 400
    status, content = fetch(door_server, path, signed["auditor"])
    (tmp_path / "e.zip").write_bytes(content)

    assert status == 200
    assert "conversations/1.jsonl" in zipfile.ZipFile(tmp_path / "e.zip").namelist()


@pytest.mark.slow
def test_the_command_compares_with_a_checkpoint_that_was_kept(door_server, signed, tmp_path):
    (tmp_path / "kept").write_bytes(fetch(door_server, "/checkpoint")[1])

    assert "leaves are intact" in door_server.command("verify", "--since", str(tmp_path / "kept"))
    assert "leaves are intact" in door_server.command("verify", "--since", str(tmp_path / "kept"), "--new", "--chains")
