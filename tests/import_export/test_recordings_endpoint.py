"""`import` and `play` while a server holds the data directory: through its door, as `import:NAME`."""

import http.client
import json
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from typing import ClassVar

import pytest
from django.core.management import CommandError, call_command

from conversations.core import data_dir as datadir
from conversations.import_export.server_client import ServerClient
from tests.support.live import Server, until
from tests.support.recorded import OWN, counts_of

COUNTERS = "SELECT messages,tool_calls,errors FROM conversations_conversation WHERE NOT is_staged AND key=?"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("door")).start()
    yield server
    server.terminate()


@pytest.fixture(autouse=True)
def data_dir(server, settings):
    """Let commands of this process find the server."""
    settings.DATA_DIR = server.data_dir


def command(*arguments):
    """Run a command; return what it said. It reaches the server's record only through the door."""
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def one_use_token(server):
    return json.loads((server.data_dir / "door.json").read_text())["token"]


def bearer(server, name="test"):
    status, body = server.request("POST", "/api/v1/door", json.dumps({"name": name}).encode(), one_use_token(server))
    assert status == 200
    return body["token"]


@pytest.mark.slow
def test_import_goes_through_the_door(server):
    output = command("import", str(OWN / "simulations.json"), "--conversation", "sim", "--name", "ferry")

    first = output.splitlines()[0]
    assert first.startswith("sim: 11 events, 4 messages, 3 tool calls, 1 error, http://")
    assert first.endswith("/conversations/sim/")
    assert server.rows(COUNTERS, ["sim"]) == [counts_of(OWN / "simulations.json")[0][:3]]
    assert server.rows("SELECT DISTINCT principal FROM conversations_event") == [("import:ferry",)]


def test_existing_conversation_is_refused_through_the_door(server):
    command("import", str(OWN / "chat.json"), "--conversation", "twice-2")

    with pytest.raises(CommandError, match=r"'twice-2' already exists: .*\(--conversation\)"):
        command("import", str(OWN / "simulations.json"), "--conversation", "twice")

    assert server.rows(COUNTERS, ["twice"]) == []
    assert server.rows("SELECT COUNT(*) FROM conversations_conversation WHERE is_staged") == [(0,)]


def test_an_update_goes_through_the_door_and_doubles_nothing(server, tmp_path):
    lines = (OWN / "chat.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "grown.jsonl"
    for text in (lines[:3], lines, lines):
        path.write_text("".join(text))
        command("import", str(path), "--update", "--conversation", "door-grown")

    assert server.rows(COUNTERS, ["door-grown"]) == [counts_of(OWN / "chat.jsonl")[0][:3]]
    ids = "SELECT COUNT(*),COUNT(DISTINCT event_id) FROM conversations_event WHERE conversation_id="
    ids += "(SELECT id FROM conversations_conversation WHERE key='door-grown')"
    count = sum(bool(line.strip()) for line in lines)
    assert server.rows(ids) == [(count, count)]


def test_strict_refusal_breaks_the_upload_off_and_leaves_nothing(server, tmp_path):
    path = tmp_path / "bad.jsonl"
    good = json.dumps({"role": "user", "content": "x" * 1000}) + "\n"
    path.write_text(good * 3000 + "{broken\n")

    with pytest.raises(CommandError, match="line 3001: must be JSON"):
        command("import", str(path), "--strict")

    until(
        lambda: server.rows("SELECT COUNT(*) FROM conversations_conversation WHERE key LIKE 'staged:%'") == [(0,)],
        what="the server to discard",
    )
    assert server.rows(COUNTERS, ["bad"]) == []


def test_play_goes_through_the_door_with_tokens(server):
    output = command("play", str(OWN / "simulations.json"), "--conversation", "play", "--tokens", "--speed", "100")

    assert "Played" in output
    assert server.rows(COUNTERS, ["play"]) == [counts_of(OWN / "simulations.json")[0][:3]]
    assert server.rows(COUNTERS, ["play-2"]) == [counts_of(OWN / "simulations.json")[1][:3]]


def test_play_chooses_how_many_and_new_ids_each_time(server):
    output = command("play", str(OWN / "chats.jsonl"), "--limit", "1", "--speed", "1000")

    first, last = output.strip().splitlines()
    assert first.startswith("chats-1-20")
    assert last == "Played 3 events in 1 conversation."


class Forgetful(BaseHTTPRequestHandler):
    """Answers, and hangs up without a word, as servers do with a quiet connection."""

    protocol_version = "HTTP/1.1"
    answered: ClassVar[list[str]] = []

    def do_POST(self):
        self.answered.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["id"])
        self.send_response(201)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        self.close_connection = True

    def log_message(self, *_):
        pass


def test_play_takes_up_a_connection_that_was_closed_meanwhile():
    with ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as forgetful:
        threading.Thread(target=forgetful.serve_forever, daemon=True).start()
        door = ServerClient(f"http://127.0.0.1:{forgetful.server_port}", "token")

        for number in range(3):
            door.publish("chat:x", {"content": "half \ud83d"}, f"{number}")

        door.close()
        forgetful.shutdown()
    assert Forgetful.answered == ["0", "1", "2"]


def test_held_directory_without_a_door_says_who_holds_it(tmp_path, settings, monkeypatch):
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr("conversations.import_export.server_client.KNOCKS", 1)

    with datadir.hold(tmp_path), pytest.raises(CommandError, match=r"is in use by .*, and it cannot be reached"):
        command("import", str(OWN / "chat.json"))


def test_door_file_is_its_owners_alone(server):
    assert stat.S_IMODE((server.data_dir / "door.json").stat().st_mode) == 0o600


def test_one_use_token_opens_once(server):
    spent = one_use_token(server)
    first, _ = server.request("POST", "/api/v1/door", b'{"name": "x"}', spent)

    again, _ = server.request("POST", "/api/v1/door", b'{"name": "x"}', spent)

    assert (first, again) == (200, 401)


def test_a_name_that_is_no_utf_8_is_refused_and_spends_no_token(server):
    token = one_use_token(server)

    status, body = server.request("POST", "/api/v1/door", b'{"name": "\xff"}', token)

    assert (status, body["error"]["code"]) == (400, "invalid")
    assert one_use_token(server) == token


def test_a_bearer_that_is_no_ascii_is_refused_like_any_other(server):
    status, _ = server.request("POST", "/api/v1/door", b'{"name":"x"}', "\xe9")

    assert status == 401


def test_import_needs_a_bearer(server):
    status, body = server.request("POST", "/api/v1/import", b'{"end": 0}')

    assert (status, body["error"]["code"]) == (401, "not_signed_in")


def test_import_without_an_end_is_refused(server):
    lines = b'{"conversation": "cut"}\n{"payload": {"type": "message", "conversation_id": "cut"}}\n'

    status, body = server.request("POST", "/api/v1/import", lines, bearer(server))

    assert (status, body["error"]["message"]) == (400, "the end line is missing: the import is incomplete")
    assert server.rows(COUNTERS, ["cut"]) == []


def test_lost_connection_discards_what_came(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("POST", "/api/v1/import")
    connection.putheader("Authorization", f"Bearer {bearer(server)}")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    event = b'{"payload": {"type": "message", "conversation_id": "lost"}}\n'
    text = b'{"conversation": "lost"}\n' + event * 600
    connection.send(b"%x\r\n%s\r\n" % (len(text), text))
    staged = "SELECT COUNT(*) FROM conversations_conversation WHERE is_staged"
    until(lambda: server.rows(staged) == [(1,)], what="the first chunk to be staged")

    connection.close()

    until(lambda: server.rows(staged) == [(0,)], what="it to be discarded")
    assert server.rows(COUNTERS, ["lost"]) == []


@pytest.mark.slow
def test_publishing_goes_on_while_a_file_comes_in(server, tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps({"role": "user", "content": f"line {n}"}) + "\n" for n in range(8_000)))
    token = bearer(server)
    importing = threading.Thread(target=command, args=["import", str(path)])
    importing.start()
    staged = "SELECT COUNT(*) FROM conversations_conversation WHERE is_staged"
    until(lambda: server.rows(staged) == [(1,)], what="the import to begin")

    status, _ = server.publish(token, "stream:beside", {"event": "log", "message": "still here"})
    is_before_its_end = server.rows(COUNTERS, ["long"]) == []
    importing.join()

    assert status == 201
    assert is_before_its_end
    assert server.rows(COUNTERS, ["long"]) == [(8_000, 0, 0)]


@pytest.mark.slow
def test_without_a_server_the_command_makes_the_record_itself(tmp_path):
    alone = Server(tmp_path / "alone")

    output = alone.command("import", str(OWN / "chat.json"))

    assert output.startswith("chat: 12 events")
    assert alone.rows(COUNTERS, ["chat"]) == [counts_of(OWN / "chat.json")[0][:3]]
