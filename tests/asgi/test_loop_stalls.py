"""No body, of whatever size or shape, keeps a server's event loop: measured by the CPU of the loop's own thread, which
spends some on waiting for the interpreter, too, while a decoder in another thread has it."""

import contextlib
import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.doors import Caller, encode, make_tokens, message
from tests.support.growth import cpu_of, read_numbers
from tests.support.live import prepared, until
from tests.support.loop_turns import WatchedServer
from tests.support.tiers import rounds

MOST = 0.2  # of the CPU that reading 1 MiB of JSON takes in one piece: 5 ms where that takes 25
TRIES = 20  # Python may collect what other threads left at any time, and a machine that is busy makes every turn dearer
MIB = 1 << 20
SHAPES = {"brackets": b"[", "pairs": b"[],", "backslashes": b'"\\\\",', "digits": b"1", "objects": b'{"a":1},'}
QUICK_SHAPES = ("brackets",)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedServer]:
    made = WatchedServer(tmp_path_factory.mktemp("watched") / "data")
    shutil.copytree(prepared(), made.data_dir)
    yield made.start()
    made.terminate()


@pytest.fixture(scope="module")
def callers(server: WatchedServer) -> list[Caller]:
    """An agent, who may publish as itself, and an admin, whose every request is read."""
    made = make_tokens(server, stall="Stall")
    return [made["stall"], made["admin"]]


def filled(shape: str, size: int) -> bytes:
    """Fill a value with a shape; lists are closed, so that they are JSON."""
    body = SHAPES[shape] * (size // len(SHAPES[shape]))
    return b"[" + body.rstrip(b",") + b"]" if body.endswith(b",") else body


def bodies(shape: str) -> dict[str, tuple[str, bytes, str]]:
    """Return what is sent to each door: path, body, content type."""
    value, json, lines = filled(shape, MIB - 2000), "application/json", "application/x-ndjson"
    payload = b'{"event":"log","index":' + value + b"}"
    publish_body = b'{"topic":"stream:s","payload":' + payload + b"}"
    large = b'{"topic":"stream:s","payload":' + filled(shape, 7 * MIB) + b"}"
    response_body = b'{"model":"x","input":' + value + b"}"
    item = b'{"model":"x","input":[{"type":"acme:note","id":"n","status":"completed","kept":' + value + b"}]}"
    traced = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"x":' + filled(shape, 7 * MIB) + b"}]}]}]}"
    logged = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"x":' + filled(shape, 7 * MIB) + b"}]}]}]}"
    hook = b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"x":' + value + b"}}"
    call = b'{"conversation_id":"s","agent":"Stall","name":"n","tool_call_id":"c",'
    arguments = encode(filled("objects", 250_000).decode())  # the most that a question may have
    return {
        "traces": ("/v1/traces", traced, json),
        "logs": ("/v1/logs", logged, json),
        "hook": ("/api/v1/hooks/claude-code", hook, json),
        "codex": ("/api/v1/hooks/codex", hook, json),
        "question": ("/api/v1/approvals/requests?wait_s=0", call + b'"args_raw":' + arguments + b"}", json),
        "no question": ("/api/v1/approvals/requests?wait_s=0", call + b'"args_raw":' + value + b"}", json),
        "one": ("/api/v1/publish", publish_body, json),
        "batch": ("/api/v1/publish", b'{"messages":[' + b",".join([publish_body] * 4) + b"]}", json),
        "lines": ("/api/v1/publish", b"\n".join([publish_body] * 4), lines),
        "a large line": ("/api/v1/publish", large, lines),
        "no batch": ("/api/v1/publish", b'{"messages":[' + filled(shape, 7 * MIB), json),
        "import": ("/api/v1/import", b'{"conversation":"s"}\n' + publish_body + b"\n", lines),
        "responses": ("/v1/responses", response_body, json),
        "an item": ("/v1/responses", item, json),
        "compact": ("/v1/responses/compact", response_body, json),
        "an item to compact": ("/v1/responses/compact", item, json),
        "message": ("/api/v1/conversations/s/messages", b'{"sender":"","content":' + value + b"}", json),
        "control": ("/api/v1/conversations/s/control", b'{"action":"pause","reason":' + value + b"}", json),
    }


@pytest.mark.parametrize(
    "shape", [s if s in QUICK_SHAPES else pytest.param(s, marks=pytest.mark.thorough) for s in SHAPES]
)
def test_no_body_keeps_the_loop(server: WatchedServer, callers: list[Caller], shape: str) -> None:
    times = {}
    for door, (path, body, kind) in bodies(shape).items():
        for who in callers[-rounds(1, 2) :]:
            times[door] = max(times.get(door, 0.0), longest_turn(server, who, path, body, kind))

    assert {door: took for door, took in times.items() if took > MOST} == {}


def longest_turn(server: WatchedServer, who: Caller, path: str, body: bytes, kind: str) -> float:
    """Return the longest turn while a body is read, of several tries the shortest, in readings of 1 MiB."""
    tries: list[float] = []
    while len(tries) < TRIES and min(tries, default=MOST + 1) > MOST:
        server.longest()
        assert who.ask("POST", path, body, Content_Type=kind).status < 500, path
        tries.append(server.longest() / cpu_of(read_numbers))
    return min(tries)


class Follower:
    """A client that follows a conversation and reads on in a thread of its own."""

    def __init__(self, caller: Caller, key: str, mode: str) -> None:
        headers = {"Authorization": f"Bearer {caller.token}"}
        url = f"ws://127.0.0.1:{caller.server.port}/ws/"
        self._socket: ClientConnection = connect(url, additional_headers=headers, max_size=None)
        self._socket.send(json.dumps({"op": "subscribe", "topic": f"stream:{key}", "after": 0, "render": mode}))
        self.seq, self.is_level = 0, False
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            for text in self._socket:
                frame = json.loads(text)
                self.seq = max([self.seq, *(event["seq"] for event in frame.get("events", []))])
                self.is_level = self.is_level or frame["t"] == "caught_up"

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
        self._thread.join()


def have_all(followers: list[Follower], events: int) -> bool:
    """Return whether each has so many events."""
    return all(follower.seq == events for follower in followers)


@pytest.mark.parametrize("mode", ["data", pytest.param("html", marks=pytest.mark.thorough)])
def test_who_follows_large_events_does_not_keep_the_loop(server: WatchedServer, callers: list[Caller], mode: str):
    key, (_, admin) = f"followed-{mode}", callers
    payload = {"event": "log", "conversation_id": key, "message": "x" * (MIB - 2000)}
    followers = [Follower(admin, key, mode) for _ in range(2)]
    tries, events = [], 0
    try:
        until(lambda: all(follower.is_level for follower in followers), what="both to follow")
        while len(tries) < TRIES and min(tries, default=MOST + 1) > MOST:
            server.longest()
            assert admin.batch(*[message(f"stream:{key}", payload)] * 7).status == 200
            events += 7
            until(partial(have_all, followers, events), what="both to have them")
            tries.append(server.longest() / cpu_of(read_numbers))
    finally:
        for subscriber in followers:
            subscriber.close()

    assert min(tries) <= MOST, tries
