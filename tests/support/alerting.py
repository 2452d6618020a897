"""What tests of alerts share: rules, things that go wrong, and a receiver that can be told how to behave."""

import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from conversations.alerts import evaluation, signing
from conversations.core.database_clock import database_now
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Alarm, AlertDelivery, AlertRule

SECRET = signing.new_secret()
MINUTE = 60_000_000  # µs


def rule(kind: str = "run_failed", **more: Any) -> AlertRule:
    """Make a rule as it stands in the database."""
    fields = {
        "name": f"rule {new_id()}",
        "form": "post",
        "url": "https://example.com/hook",
        "secret": SECRET,
        "since": 0,
        "updated_by": "system",
        "updated_at": 0,
    }
    return AlertRule.objects.create(kind=kind, **fields | more)


def fail(key: str = "c", agent: str = "Dialogue", reason: str = "error", **more: Any) -> str:
    """Have a run of this agent fail; return the run."""
    run = new_id()
    queued = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": agent, "input_seq": 0}
    failed = {"event": "run.failed", "id": new_id(), "run_id": run, "agent": agent, "reason": reason, **more}
    log.append([log.from_internal(key, body, SYSTEM) for body in (queued, failed)])
    return run


def lose(key: str = "c", lost: int | None = 3) -> None:
    """Have the record miss something."""
    body = {"event": "record.gap", "id": new_id(), "reason": "trimmed", "why": "they were trimmed", "lost": lost}
    log.append([log.from_internal(key, body, SYSTEM)])


def later(minutes: float) -> int:
    """Return a time to come, µs."""
    return database_now() + int(minutes * MINUTE)


class Post(NamedTuple):
    """A request that a receiver took."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The delivery's."""
        return self.headers["webhook-id"]

    @property
    def payload(self) -> Any:
        """What it says."""
        return json.loads(self.body)

    def is_signed_by(self, secret: str) -> bool:
        """Verify it as a receiver does, from nothing but the specification."""
        key = base64.b64decode(secret.split("_", 1)[1])
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split(" ")


class Receiver(ThreadingHTTPServer):
    """Takes webhooks on loopback. `behave(n)` says what the n-th request meets: a status, `stall` or `drop`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.posts: list[Post] = []  # answered with 200
        self.requests = 0
        self.answers: list[int | str] = []  # for the next requests, one by one; then 200
        self.headers: dict[str, str] = {}
        self.body = b""  # of every answer
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """Where to send."""
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    def behave(self, number: int) -> int | str:
        """Return what this request meets."""
        return self.answers.pop(0) if self.answers else 200

    def judge(self, body: bytes) -> int | None:
        """Return a status for what came; None where nothing is wrong with it."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: senders are killed here."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.requests += 1
            what = self.server.judge(body) or self.server.behave(self.server.requests)
        if what == "stall":
            self.server.released.wait(30)
            return
        if what == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if what == 200:
            with self.server.lock:
                self.server.posts.append(Post(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        self.send_response(int(what))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiving(receiver: Receiver | None = None) -> Iterator[Receiver]:
    """Run a receiver for as long as the block."""
    with receiver or Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.released.set()
            receiver.shutdown()
            thread.join()


def look(minutes: float = 0.0, *, is_slow: bool = True) -> None:
    """Look as if so many minutes had passed."""
    now = later(minutes)
    while evaluation.evaluate(now, is_slow=is_slow):
        pass


def opened(**fields: Any) -> list[Alarm]:
    """Return the open alarms, oldest first."""
    return list(Alarm.objects.filter(closed_at=None, **fields).order_by("id"))


def sent() -> list[tuple[str, str, int]]:
    """Return what is sent, oldest first: its kind, conversation and count."""
    rows = AlertDelivery.objects.order_by("created_at", "id").values_list("body", flat=True)
    payloads = [json.loads(body) for body in rows]
    return [(each["type"], each["data"]["conversation_id"], each["data"]["count"]) for each in payloads]
