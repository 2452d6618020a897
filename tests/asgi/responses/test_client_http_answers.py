"""`HttpBus` against answers that our server does not give, and wrong settings."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

from switchboard import HttpBus, Refused, Unreachable
from switchboard.api import Api
from tests.client.test_client_http import publish
from tests.support.live import until


@pytest.fixture
def topic() -> str:
    """A conversation's messages."""
    return f"chat:{uuid4().hex}"


def messages(body: bytes) -> list[object]:
    """Return what a request publishes: several messages, or one."""
    fields = json.loads(body)
    several: list[object] = fields.get("messages", [fields])
    return several


class Scripted(ThreadingHTTPServer):
    """What stands between: it gives these answers to what is published, one each, then those of our server."""

    daemon_threads = True

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers, self.requests = list(answers), list[tuple[float, bytes]]()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((time.monotonic(), body))
        accepted = json.dumps({"items": [{} for _ in messages(body)]}).encode()
        status, headers, text = self.server.answers.pop(0) if self.server.answers else (201, {}, accepted)
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(text))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> Iterator[Scripted]:
    """Serve the answers of the test's parameter."""
    with Scripted(*request.param) as between:
        thread = threading.Thread(target=between.serve_forever, args=(0.02,))
        thread.start()
        yield between
        between.shutdown()
        thread.join()


BUSY = b'{"error":{"code":"busy","message":"slow down"}}'
PAGE = b"<html>Gateway</html>"


@pytest.mark.parametrize("scripted", [[(429, {"Retry-After": "1"}, BUSY)]], indirect=True)
def test_busy_server_is_given_the_time_it_asks_for(scripted: Scripted, topic: str, tmp_path: Path) -> None:
    with HttpBus(scripted.url, "sb_x", spool_dir=tmp_path) as bus:
        publish(bus, topic, 1)
        assert bus.waiting == 1
        until(lambda: bus.waiting == 0, what="the message to be sent again")

    (first, body), (second, again) = scripted.requests
    assert second - first >= 1
    assert messages(body) == messages(again)


@pytest.mark.parametrize(
    "scripted",
    [
        [(status, headers, PAGE)]
        for status, headers in [
            (502, {}),
            (503, {}),
            (500, {}),
            (404, {}),
            (403, {}),
            (200, {}),
            (301, {"Location": "x"}),
        ]
    ],
    indirect=True,
)
def test_what_our_server_did_not_say_is_no_answer(scripted: Scripted, topic: str, tmp_path: Path) -> None:
    with HttpBus(scripted.url, "sb_x", spool_dir=tmp_path) as bus:
        publish(bus, topic, 1)
        until(lambda: bus.waiting == 0, what="the message to be sent again")

    first, again = (messages(body) for _, body in scripted.requests)
    assert first == again
    assert not list(tmp_path.glob("*.refused.jsonl"))


@pytest.mark.parametrize("scripted", [[(413, {}, PAGE)]], indirect=True)
def test_request_too_large_for_a_proxy_is_refused(scripted: Scripted, topic: str, tmp_path: Path) -> None:
    with HttpBus(scripted.url, "sb_x", spool_dir=tmp_path) as bus, pytest.raises(Refused) as caught:
        publish(bus, topic, 1)

    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    "scripted",
    [[(200, {}, b'{"items":[{"id":"a"}]}')], [(200, {}, b'{"items":[{"error":{"code":"busy"}},{}]}')]],
    indirect=True,
)
def test_batch_that_was_not_answered_whole_is_sent_again(scripted: Scripted, topic: str) -> None:
    api = Api(scripted.url, "sb_x", 5)

    with pytest.raises(Unreachable):
        api.publish([b"{}", b"{}"])
    api.close()


@pytest.mark.parametrize("url", ["", "switchboard", "ftp://x", "http://", "http://x:port"])
def test_wrong_address_is_said_at_once(url: str) -> None:
    with pytest.raises(ValueError, match=r"http|[Pp]ort"):
        HttpBus(url, "sb_x")


@pytest.mark.parametrize("token", ["", "sb_x\n", "sb_ż"])
def test_wrong_token_is_said_at_once(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        HttpBus("http://127.0.0.1", token)
