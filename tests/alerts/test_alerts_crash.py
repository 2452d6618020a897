"""SIGKILL of the server while it sends, to a receiver that fails, stalls, hangs up and restarts: each webhook arrives
at least once, with one id, and none is lost."""

import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.alerting import Post, Receiver, receiving
from tests.support.live import Server, on_postgresql, until
from tests.support.services import PostgresServer, running

SEED = "from tests.support.alerting import fail\nfor n in range({}, {}): fail(f'c{{n}}')"


class BadReceiver:
    """Takes webhooks on one port, badly: some requests fail, stall or are hung up on, and it is away now and then."""

    def __init__(self, seed: int, requests_a_turn: int) -> None:
        self.posts: list[Post] = []
        self.requests = 0
        self.restarts = -1
        self.met: Counter[int | str] = Counter()
        self._requests_a_turn = requests_a_turn
        self.port = 0
        self._dice = random.Random(seed)
        self._ending = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "BadReceiver":
        self._thread.start()
        assert self._begun.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        """Serve in turns; after each the port is closed for a moment, and who was stalled is hung up on."""
        while not self._ending.is_set():
            receiver = Receiver(self.port)
            receiver.posts = self.posts  # before it takes the first
            receiver.behave = self._behave  # type: ignore[method-assign]
            self.port = receiver.server_address[1]
            with receiving(receiver):
                self.restarts += 1
                self._begun.set()
                self._wait_for_turn_to_end(receiver)
            self._ending.wait(0.3)

    def _wait_for_turn_to_end(self, receiver: Receiver) -> None:
        start = self.requests
        while not self._ending.wait(0.02) and self.requests - start < self._requests_a_turn:
            pass

    def _behave(self, _: int) -> int | str:
        self.requests += 1
        what = self._dice.choices([200, 500, 503, "drop", "stall", 302], [80, 6, 4, 6, 2, 2])[0]
        self.met[what] += 1
        return what


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The environment of servers on each database."""
    if request.param == "sqlite":
        yield {}
        return
    with running(PostgresServer()) as server:
        assert isinstance(server, PostgresServer)
        yield on_postgresql(server.url)


def server_of(database: dict[str, str]) -> Server:
    settings = {"SWITCHBOARD_ALERT_HOSTS": "127.0.0.1", "SWITCHBOARD_ALERT_RETRY_S": "0.1"}
    server = Server(None, **settings, SWITCHBOARD_ALERT_TIMEOUT_S="1", SWITCHBOARD_TEAMS="", **database)
    if database:
        server.command("migrate", "-v", "0")
    return server


def make_rule(server: Server, port: int) -> str:
    """Make the rule over the API; return its secret."""
    rule = {"name": "Failures", "kind": "run_failed", "form": "post", "url": f"http://127.0.0.1:{port}/hook"}
    status, answer = server.request("POST", "/api/v1/alert-rules", json.dumps(rule).encode(), server.token())
    assert status == 201, answer
    return str(answer["secret"])


def killed_at(server: Server, passing: int) -> None:
    """Run the server until it kills itself between a delivery and its record."""
    server.environment["SWITCHBOARD_FAILPOINT"] = f"before-delivery-recorded:{passing}"
    server.launch()
    process = server.process
    assert process is not None
    until(lambda: process.poll() is not None, within=120, what="the server to be killed")
    assert process.poll() == -9
    del server.environment["SWITCHBOARD_FAILPOINT"]


def outcomes(server: Server) -> list[Any]:
    return server.rows("SELECT id, status FROM conversations_alertdelivery")


def all_delivered(server: Server, count: int) -> bool:
    rows = outcomes(server)
    return len(rows) == count and all(status == "delivered" for _, status in rows)


def judge(server: Server, receiver: BadReceiver, secret: str, count: int) -> int:
    """Hold what arrived against what was to be sent; return how many came more than once."""
    by_conversation = defaultdict(set)
    for post in receiver.posts:
        assert post.is_signed_by(secret)
        by_conversation[post.payload["data"]["conversation_id"]].add(post.id)
    assert set(by_conversation) == {f"c{n}" for n in range(count)}
    assert all(len(ids) == 1 for ids in by_conversation.values())
    assert {id_ for ids in by_conversation.values() for id_ in ids} == {id_ for id_, _ in outcomes(server)}
    return len(receiver.posts) - count


def survive(database: dict[str, str], count: int, kills: int, record: Any) -> None:
    server = server_of(database)
    with BadReceiver(count, requests_a_turn=count // 6) as receiver:
        server.start()
        secret = make_rule(server, receiver.port)
        server.terminate()
        server.command("shell", "--no-imports", "-c", SEED.format(0, count // 2))
        for number in range(kills):
            killed_at(server, count // 20 + number)
        server.start()
        server.command("shell", "--no-imports", "-c", SEED.format(count // 2, count))
        until(lambda: len(outcomes(server)) == count, within=60, what="every alarm to be raised")
        server.kill()
        server.start()
        until(lambda: all_delivered(server, count), within=300, what="every webhook to be delivered")
        repeated = judge(server, receiver, secret, count)
        server.terminate()
    assert receiver.restarts >= 3
    assert set(receiver.met) == {200, 500, 503, "drop", "stall", 302}
    record("webhooks", f"{count} delivered, {repeated} more than once, {receiver.requests} requests, "
           f"{receiver.restarts} restarts of the receiver, {kills + 1} kills of the server")  # fmt: skip


def shown(server: Server, status: str, token: str) -> list[Any]:
    """Return the deliveries that the API lists with a status: id, attempts and error."""
    _, answer = server.request("GET", f"/api/v1/alert-deliveries?status={status}", token=token)
    return [(row["id"], row["attempts"], row["error"]) for row in answer["items"]]


@pytest.mark.crash
@pytest.mark.timeout(400)
@pytest.mark.thorough
def test_what_was_sent_but_not_recorded_waits_and_arrives_again_with_its_id(
    database: dict[str, str],
) -> None:
    server = server_of(database)
    with receiving() as receiver:
        server.start()
        make_rule(server, receiver.server_address[1])
        token = server.token("reader")
        server.terminate()
        server.command("shell", "--no-imports", "-c", SEED.format(0, 1))
        killed_at(server, 1)
        (sent,) = receiver.posts
        assert outcomes(server) == [(sent.id, "waiting")]

        server.start()

        assert shown(server, "failed", token) == []
        ((delivered, attempts, error),) = until(lambda: shown(server, "delivered", token), what="it to be delivered")
        assert shown(server, "waiting", token) == []
        assert (delivered, error, attempts >= 2) == (sent.id, "", True)
        assert len(receiver.posts) >= 2
        assert {post.id for post in receiver.posts} == {sent.id}
        server.terminate()


@pytest.mark.crash
@pytest.mark.timeout(400)
@pytest.mark.thorough
def test_no_webhook_is_lost_over_a_sigkill(database: dict[str, str], record_property: Any) -> None:
    survive(database, 60, 1, record_property)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_of_1000_webhooks_none_is_lost_over_many_kills(database: dict[str, str], record_property: Any) -> None:
    survive(database, 1000, 5, record_property)
