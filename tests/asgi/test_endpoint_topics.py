"""`GET /api/v1/topics/{topic}/messages`: strictly after a place, nothing replayed, nothing skipped (§3.2)."""

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.doors import Caller, ask, message, message_payload, token
from tests.support.live import Server, until


def address(topic: str, **fields: object) -> str:
    """Write the address of a read."""
    query = "&".join(f"{name}={value}" for name, value in fields.items())
    return f"/api/v1/topics/{quote(topic, safe='')}/messages?{query}"


def read(caller: Caller, topic: str, **fields: object) -> list[dict]:
    """Read messages."""
    answer = caller.get(address(topic, **fields))
    assert answer.status == 200, answer.body
    items = answer.body["items"]
    assert answer.body["cursor"] == (items[-1]["id"] if items else None)
    assert {item["topic"] for item in items} <= {topic}
    return items


@pytest.mark.parametrize("topic", ["stream:pages", "chat:pages", "chat:p/ä ?#&", "control:A", "signal:all", "dlq:A"])
def test_every_topic_is_paged_in_order(caller, topic):
    payloads = [message_payload("pages-" + topic[:4], f"{topic} {n}", type="message") for n in range(7)]
    if topic.startswith("stream:"):
        payloads = [payload | {"conversation_id": "pages"} for payload in payloads]
    for n, payload in enumerate(payloads):
        assert caller.publish(topic, payload, f"{topic} {n}").status == 201

    newest = read(caller, topic, limit=3)
    assert [item["payload"] for item in newest] == payloads[4:]
    ids, last_id = [], quote(f"{topic} 0", safe="")
    while items := read(caller, topic, last_id=last_id, limit=2):
        ids += items
        last_id = quote(items[-1]["id"], safe="")
    assert [item["payload"] for item in ids] == payloads[1:]


def test_an_id_that_was_never_given_out_is_refused(caller):
    caller.publish("chat:here", message_payload("here", "x"), "m1")
    caller.publish("chat:elsewhere", message_payload("here", "x"), "m2")

    for topic, last_id in (("chat:here", "m2"), ("stream:here", "99"), ("stream:here", "nobody"), ("chat:no", "1")):
        answer = caller.get(address(topic, last_id=last_id))
        assert (answer.status, answer.body["error"]["code"]) == (400, "unknown_position")


def test_the_id_of_a_joined_token_is_the_place_of_its_segment(caller):
    caller.batch(*[token("segment", n, f"t{n}") for n in range(3)], token("segment", 0, "u0"))

    for last_id in ("t0", "t1", "t2", "1"):
        (after,) = read(caller, "stream:segment", last_id=last_id)
        assert after["payload"]["text"] == "0 "


@pytest.mark.parametrize("topic", ["stream:wait", "chat:wait"])
def test_who_waits_is_told_at_once(caller, topic):
    last = caller.publish("chat:wait", message_payload("wait", "before")).body["id"]
    with ThreadPoolExecutor(1) as crowd:
        took = []
        while len(took) < 10 and min(took, default=1) > 0.9:  # a busy machine is slow at times only
            waiting = crowd.submit(read, caller, topic, block_ms=20_000, last_id=last)
            give_time(caller)
            began = time.monotonic()
            last = caller.publish("chat:wait", message_payload("wait", "news")).body["id"]
            (item,) = waiting.result(60)
            assert item["payload"]["content"] == "news"
            took.append(time.monotonic() - began)

        assert min(took) < 0.9  # a lost notification would cost a second


@pytest.mark.parametrize("topic", ["stream:new", "chat:new", "signal:new"])
def test_who_names_no_place_waits_for_what_is_new(caller, topic):
    caller.publish(topic, message_payload("new", "old"))
    with ThreadPoolExecutor(1) as crowd:
        waiting = crowd.submit(read, caller, topic, block_ms=20_000)
        until(lambda: caller.publish(topic, message_payload("new", "fresh")) and waiting.done())

    assert {item["payload"]["content"] for item in waiting.result()} == {"fresh"}


def give_time(caller: Caller) -> None:
    """Let a reader in another thread begin to wait: twenty round trips."""
    for _ in range(20):
        assert ask(caller.server, "GET", "/healthz").status == 200


def test_a_wait_without_news_ends_with_nothing(caller):
    began = time.monotonic()

    assert read(caller, "signal:silence", block_ms=300) == []
    assert 0.3 <= time.monotonic() - began < 30


def test_two_hundred_who_wait_hold_no_thread(caller):
    waiters = []
    for n in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", caller.server.port, timeout=60)
        head = {"Authorization": f"Bearer {caller.token}"}
        connection.request("GET", address(f"signal:w{n % 5}", block_ms=30_000), headers=head)
        waiters.append(connection)
    began = time.monotonic()
    assert caller.publish("chat:busy", message_payload("busy", "x")).status == 201
    assert len(read(caller, "chat:busy")) == 1
    assert time.monotonic() - began < 20  # those that wait do so for 30

    for waiter in waiters[100:]:
        waiter.close()  # gone: they wait no more
    for n in range(5):
        caller.publish(f"signal:w{n}", {"n": n})
    for n, waiter in enumerate(waiters[:100]):
        (item,) = json.loads(waiter.getresponse().read())["items"]
        assert item["payload"] == {"n": n % 5}
        waiter.close()


@pytest.mark.thorough
def test_a_server_that_stops_keeps_nobody_waiting(tmp_path: Path) -> None:
    server = Server(tmp_path / "data").start()
    caller = Caller(server, server.token())
    with ThreadPoolExecutor(1) as crowd:
        waiting = crowd.submit(read, caller, "signal:end", block_ms=30_000)
        give_time(caller)
        began = time.monotonic()

        server.terminate()

        assert waiting.result(60) == []
        assert time.monotonic() - began < 20  # it would wait for 30


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 501},
        {"limit": "x"},
        {"limit": "%D9%A1"},
        {"block_ms": 30_001},
        {"block_ms": -1},
        {"other": 1},
        {"last_id": "%FF"},
        {"limit": "1&limit=2"},
    ],
)
def test_a_wrong_field_is_named(caller, wrong):
    assert caller.get(address("stream:x", **wrong)).status == 400


def test_a_topic_we_do_not_know_is_refused(caller):
    for topic in ("nowhere:x", "stream:", "x", "stream:" + "x" * 201):
        assert caller.get(address(topic)).status == 400
    assert caller.get("/api/v1/topics/stream:x").status == 404
    assert caller.get("/api/v1/topics/messages").status == 404


def test_only_reading_is_possible(caller):
    answer = caller.ask("POST", address("stream:x"))

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert caller.ask("HEAD", address("stream:x")).status == 200


def test_large_payloads_come_in_several_answers(caller):
    for n in range(8):
        payload = {"event": "log", "text": "x" * 1_000_000, "n": n}
        assert caller.batch(message("stream:heavy", payload)).body["items"][0]["seq"] == n + 1

    first = read(caller, "stream:heavy", last_id="0", limit=500)
    rest = read(caller, "stream:heavy", last_id=first[-1]["id"], limit=500)

    assert len(first) < 8
    assert [item["payload"]["n"] for item in first + rest] == list(range(8))
