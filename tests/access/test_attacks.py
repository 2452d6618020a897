"""What an attacker sends to a real server: no answer is a 500, nothing is believed, nothing grows without a bound."""

import http.client
import json
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from conversations.core.secret_masking import unaddressed
from tests.support.live import Server, until
from tests.support.tiers import variants

Guess = Callable[..., int]
DEEP = "[" * 50_000 + "]" * 50_000
OURS = [
    *("/", "/conversations/x/", "/nowhere/", "/sign-in/", "/sign-in/link/", "/people/", "/static/nowhere.js"),
    *("/api/v1/conversations", "/api/v1/nowhere", "/api/v1/publish", "/api/v1/import", "/api/v1/door"),
    *("/healthz", "/readyz", "/conversations/x/entries/", "/conversations/~/", "/ws/"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that nobody else uses."""
    started = Server().start()
    yield started
    started.terminate()
    assert "Traceback" not in started.output()


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    """An admin's token."""
    return server.token()


@pytest.fixture(scope="module")
def viewer(server: Server) -> str:
    """A viewer's token."""
    return server.token("looker", "viewer")


def ask(server: Server, method: str, path: str, body: bytes = b"", **headers: str) -> http.client.HTTPResponse:
    """Make one request; return it with its body read."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    answer.text = answer.read().decode(errors="replace")  # type: ignore[attr-defined]  # read once, kept beside the head
    connection.close()
    return answer


@pytest.fixture
def guess(server: Server) -> Guess:
    """Try to sign in with a wrong password; return the status."""
    form = ask(server, "GET", "/sign-in/")
    cookie = str(form.headers["Set-Cookie"]).partition(";")[0]
    token_field = re.search(r'csrfmiddlewaretoken" value="(\w+)"', form.text)  # type: ignore[attr-defined]
    assert token_field

    def tried(name: str, **headers: str) -> int:
        body = urlencode({"username": name, "password": "guess", "csrfmiddlewaretoken": token_field[1]}).encode()
        kind = "application/x-www-form-urlencoded"
        return ask(server, "POST", "/sign-in/", body, Cookie=cookie, Content_Type=kind, **headers).status

    return tried


@pytest.mark.parametrize("path", OURS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_answer_forbids_scripts_and_guessing(server: Server, viewer: str, method: str, path: str) -> None:
    answer = ask(server, method, path, Authorization=f"Bearer {viewer}")

    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    if path.startswith(("/api/", "/healthz", "/readyz")) or ("entries" in path and answer.status == 200):
        assert answer.headers["Content-Type"] == "application/json"


def test_files_and_bodies_over_the_limit_are_guarded_too(server: Server, viewer: str) -> None:
    page = ask(server, "GET", "/", Authorization=f"Bearer {viewer}")
    files = sorted(set(re.findall(r"/static/[^\"#]+", page.text)))  # type: ignore[attr-defined]
    assert len(files) > 3

    for answer in [*(ask(server, "GET", path) for path in files), ask(server, "POST", "/sign-in/", b"x" * (5 << 20))]:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "body",
    [
        f'{{"topic": "stream:x", "payload": {DEEP}}}',
        f'{{"topic": "stream:x", "other": {DEEP}, "payload": {{}}}}',
        '{"topic": "stream:x", "payload": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}",
    ],
)
def test_json_that_is_too_deep_is_refused(server: Server, token: str, body: str) -> None:
    for path, sent in (("/api/v1/publish", body), ("/api/v1/import", f'{{"conversation": "d"}}\n{body}\n{{"end": 1}}')):
        status, answer = server.request("POST", path, sent.encode(), token)

        assert (status, answer["error"]["code"]) in ((400, "invalid"), (413, "too_large"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    variants(
        [
            ("application/json", b'{"messages":["' + b'\\"' * 4_000_000, 400),  # a text of escapes that never ends
            ("application/x-ndjson", b'{"topic":"stream:x","payload":' + b"[" * 101 + b'"' + b'\\"' * 500_000, 200),
            ("application/json", b'{"messages":[' + b"{}," * 2_700_000, 413),  # more messages than one request has
            ("application/json", b'{"messages":[{"a":' + b"[" * 8_000_000, 400),
            ("application/x-ndjson", b"\n" * (8 << 20), 200),
        ],
        quick=2,
    ),
)
def test_a_body_that_is_hard_to_read_holds_nobody_up(
    server: Server, token: str, kind: str, body: bytes, expected: int
) -> None:
    with ThreadPoolExecutor(1) as other:
        sent = {"Authorization": f"Bearer {token}", "Content_Type": kind}
        answer = other.submit(ask, server, "POST", "/api/v1/publish", body, **sent)
        longest, is_over = 0.0, False
        while not is_over:
            is_over, began = bool(wait([answer], 0.02).done), time.monotonic()
            assert ask(server, "GET", "/healthz").status == 200
            longest = max(longest, time.monotonic() - began)

    assert answer.result().status == expected
    assert longest < 5


def test_a_door_key_may_be_anything(server: Server) -> None:
    assert ask(server, "POST", "/api/v1/door", b'{"name": "x"}', Authorization="Bearer \xe9").status == 401


@pytest.mark.parametrize("limit", ["000000001999999999999", "000000001" + "9" * 5000, "201", "0", "1.0"])
def test_a_limit_is_a_limit(server: Server, viewer: str, limit: str) -> None:
    status, answer = server.request("GET", f"/api/v1/conversations?limit={limit}", token=viewer)

    assert (status, answer["error"]["field"]) == (400, "limit")


@pytest.mark.slow
def test_a_forwarded_address_does_not_open_the_throttle(guess: Guess) -> None:
    tries = [guess("owner", X_Forwarded_For=f"10.0.0.{n}") for n in range(7)]

    assert tries[-1] == 429


@pytest.mark.slow
def test_a_flood_of_guesses_is_held_back(guess: Guess) -> None:
    with ThreadPoolExecutor(20) as crowd:
        tries = list(crowd.map(guess, [f"somebody-{n}" for n in range(20)]))

    assert {422, 429} == set(tries)


def test_what_django_logs_of_a_request_has_its_id(server: Server) -> None:
    assert ask(server, "GET", "/no%0awhere/%1b[2J", X_Request_ID="told-by-me").status == 404

    (line,) = [line for line in server.output().splitlines() if "told-by-me" in line]
    assert "Not Found: /no" in line
    assert "\x1b" not in server.output()


@pytest.mark.parametrize(
    ("words", "words_told"),
    [
        ("Error 111 connecting to 10.1.2.3:6379. Connect call failed ('10.1.2.3', 6379).", "Error 111 connecting to …"),
        (
            'connection to server at "db.inside", port 5432 failed: no user "ada"',
            "connection to server at …, port 5432",
        ),
        ("Error -2 connecting to cache.inside:6379. Name not known.", "Error -2 connecting to …. Name not known."),
        ("failed to resolve host 'db.inside': [Errno -2] Name not known", "failed to resolve host …: [Errno -2] Name"),
        ("couldn't get a connection, or can't say why", "couldn't get a connection, or can't say why"),
        ("waiting for migrations: run `switchboard migrate`", "waiting for migrations: run `switchboard migrate`"),
        ("no answer within 2 s", "no answer within 2 s"),
    ],
)
def test_readiness_tells_strangers_no_address(words: str, words_told: str) -> None:
    assert unaddressed(words).startswith(words_told)
    assert not any(name in unaddressed(words) for name in ("10.1.2.3", "inside", "ada"))


@pytest.mark.parametrize("piece", [b"a", pytest.param(b"\r\nX-Another: header", marks=pytest.mark.thorough)])
def test_a_head_without_end_is_cut_off(server: Server, piece: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")

        with pytest.raises(ConnectionError):
            connection.sendall(piece * (64 << 20))


def test_a_long_head_within_the_limit_is_read(server: Server) -> None:
    assert ask(server, "GET", "/healthz", X_Long="a" * 30_000).status == 200


@pytest.mark.parametrize("topic", ["stream:\ud800", "stream:a\0b"])
def test_a_topic_that_no_conversation_can_have_is_refused(server: Server, viewer: str, topic: str) -> None:
    with follow(server, viewer) as wire:
        wire.send(json.dumps({"op": "subscribe", "topic": topic}))

        assert json.loads(wire.recv(60))["code"] == "unknown_topic"


def test_a_watcher_starts_no_epoch_after_epoch(server: Server, token: str, viewer: str) -> None:
    server.publish(token, "stream:epochs", {"event": "log"})
    epochs = set()
    with follow(server, viewer) as wire:
        for _ in range(5):
            wire.send(json.dumps({"op": "subscribe", "topic": "stream:epochs", "after": 1000}))
            while (frame := json.loads(wire.recv(60)))["t"] != "caught_up":
                epochs |= {frame["epoch"]} if frame["t"] == "reset" else set()

    assert len(epochs) == 1


@pytest.mark.slow
def test_a_flood_of_frames_does_not_hold_others_up(server: Server, token: str, viewer: str) -> None:
    server.publish(token, "stream:busy", {"event": "log"})
    with follow(server, viewer) as wire, follow(server, viewer) as other:
        for n in range(1000):
            wire.send(json.dumps({"op": "subscribe", "topic": f"stream:busy{n % 300}", "render": "html"}))
        other.send(json.dumps({"op": "subscribe", "topic": "stream:busy"}))
        until(lambda: json.loads(other.recv(60))["t"] == "caught_up", within=60)

        wire.send(json.dumps({"op": "subscribe", "topic": "x" * 70_000}))
        with pytest.raises(ConnectionClosed) as closed:
            deque(wire, maxlen=0)
    assert closed.value.rcvd
    assert closed.value.rcvd.code == 1009


def follow(server: Server, token: str):  # type: ignore[no-untyped-def]  # websockets' own context manager
    """Open a socket as the holder of a token."""
    address = f"ws://127.0.0.1:{server.port}/ws/"
    return connect(address, additional_headers={"Authorization": f"Bearer {token}"}, compression=None)
