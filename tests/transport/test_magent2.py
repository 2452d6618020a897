"""magent2's gateway, worker and chat tool beside one server on the same Redis: both ways, and read as people read."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.support import magent2
from tests.support.live import Server, until
from tests.support.magent2 import Envelope, Gateway, Json, Worker
from tests.support.services import RedisServer

ROW = re.compile(r'<article class="event[^>]*? data-kind="([^"]*)" data-level="([^"]*)"[^>]*? data-sender="([^"]*)"')


@pytest.fixture(scope="module")
def site(redis_server: RedisServer) -> Iterator[Server]:
    """A server that records this Redis."""
    server = Server(None, "--no-demo", SWITCHBOARD_REDIS_URL=redis_server.url, SWITCHBOARD_TEAMS="")
    yield server.start()
    server.terminate()


@pytest.fixture(scope="module")
def token(site: Server) -> str:
    """An admin's token."""
    return site.token()


@pytest.fixture
def gateway(redis_server: RedisServer) -> Gateway:
    """The gateway."""
    return Gateway(redis_server)


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[Callable[..., Worker]]:
    """Start workers that end with the test."""
    begun: list[Worker] = []

    def start(agent: str, runner: magent2.Runner = magent2.echo) -> Worker:
        begun.append(Worker(redis_server, agent, runner))
        return begun[-1]

    yield start
    for process in begun:
        process.stop()


def fresh(name: str) -> str:
    """Return a name that no other test has."""
    return f"magent2-{name}-{uuid.uuid4().hex[:8]}"


def events(site: Server, key: str) -> list[dict[str, Any]]:
    """Return what is recorded of a conversation, but tokens."""
    rows = site.database().execute(
        "SELECT e.seq,e.kind,e.principal,e.body FROM conversations_event e JOIN conversations_conversation c"
        f" ON c.id=e.conversation_id WHERE c.key='{key}' AND e.kind<>'token' ORDER BY e.seq"
    )
    return [json.loads(body) | {"seq": seq, "kind": kind, "by": by} for seq, kind, by, body in rows.fetchall()]


def kinds(site: Server, key: str) -> list[str]:
    """Return the kinds of a conversation's events, but tokens."""
    return [event["kind"] for event in events(site, key)]


def page(site: Server, token: str, address: str) -> str:
    """Open a page."""
    with urlopen(Request(f"{site.url}{address}", headers={"Authorization": f"Bearer {token}"}), timeout=60) as answer:
        return str(answer.read().decode())


SEND = """
from conversations.conversation import post_message
from conversations.models import User
owner = User.objects.get(username="owner")
print(post_message.post(owner, {!r}, recipient={!r}, content={!r}, client_id="1").seq)
"""


def send(site: Server, key: str, recipient: str, content: str) -> int:
    """Say something as the owner; return its seq."""
    return int(site.command("shell", "--no-imports", "-c", SEND.format(key, recipient, content)))


@pytest.mark.slow
def test_message_of_its_gateway_is_read_once_and_its_worker_by_name(
    site: Server, token: str, gateway: Gateway, worker: Callable[..., Worker]
) -> None:
    key, agent = fresh("talk"), fresh("Desk")

    def behind_gateway(envelope: Envelope) -> Iterator[Json]:  # which says `user_message` after it handed it over
        until(lambda: "user_message" in kinds(site, key), what="what the gateway shows")
        yield from magent2.with_tool(envelope)

    worker(agent, behind_gateway)

    gateway.send(key, "user:rosa", f"agent:{agent}", "where is it?")

    until(lambda: "output" in kinds(site, key), what="the worker's answer")
    assert kinds(site, key) == ["message", "user_message", "tool_step", "tool_step", "output"]
    html = page(site, token, f"/conversations/{key}/")
    rows = ROW.findall(html)
    desk = f"agent:{agent}"
    assert [row for row in rows if row[1] != "all"] == [
        ("message", "chat", "user:rosa"),
        ("tool_step", "steps", ""),
        ("output", "chat", ""),
    ]
    assert ("user_message", "all", "user:rosa") in rows
    _, shown = site.request("GET", f"/api/v1/conversations/{key}", token=token)
    assert (shown["messages"], shown["tool_calls"], shown["errors"]) == (2, 1, 0)
    lanes = page(site, token, f"/conversations/{key}/?view=lanes")
    assert re.findall(r'class="lane-head" data-key="([^"]*)"', lanes) == ["user:rosa", desk, "system", "server:"]


@pytest.mark.slow
def test_operator_and_worker_talk_and_its_gateway_sees_it(
    site: Server, token: str, gateway: Gateway, worker: Callable[..., Worker]
) -> None:
    key, agent = fresh("steered"), fresh("Desk")
    desk = worker(agent)
    gateway.send(key, "user:rosa", f"agent:{agent}", "first")
    until(lambda: kinds(site, key).count("output") == 1, what="the first answer")

    seq = send(site, key, f"agent:{agent}", "Wie weit? 20 € höchstens")

    until(lambda: kinds(site, key).count("output") == 2, what="the second answer")
    assert [(envelope.content, envelope.sender) for envelope in desk.read][1:] == [
        ("Wie weit? 20 € höchstens", "user:owner")
    ]
    assert desk.unreadable == []
    (event,) = [
        event for event in gateway.stream(key) if event.get("text") == "Wie weit? 20 € höchstens" and "sender" in event
    ]
    assert {name: event[name] for name in ("event", "conversation_id", "sender")} == {
        "event": "user_message",
        "conversation_id": key,
        "sender": "user:owner",
    }
    marks = page(site, token, f"/conversations/{key}/standing/?of={seq}")
    assert re.search(rf'data-of="{seq}" data-state="(bus|stored|waits)"', marks) is None, marks
    assert "robably answered by" in marks


@pytest.mark.slow
def test_what_the_relay_told_the_stream_is_not_recorded_again(site: Server, token: str, gateway: Gateway) -> None:
    """The server that reads it back is another process than the one that told it."""
    key = fresh("echoed")
    send(site, key, f"agent:{fresh('Nobody')}", "only once")
    until(lambda: gateway.stream(key), what="the words on the stream")
    before = gateway.entries(f"stream:{key}")

    site.kill()
    site.start()
    gateway.publish(f"stream:{key}", before[0][1])  # as after a crash before the relay noted that it was sent
    gateway.publish(f"stream:{key}", {"event": "log", "message": "after"})

    until(lambda: "log" in kinds(site, key), what="the entry behind it")
    assert kinds(site, key) == ["message", "log"]
    quarantined = site.database().execute("SELECT reason FROM conversations_quarantine").fetchall()
    assert quarantined == []


def test_relayed_entries_are_as_its_own_programs_write_them(site: Server, token: str, gateway: Gateway) -> None:
    key, agent = fresh("wire"), fresh("Desk")
    send(site, key, f"agent:{agent}", "Grüße")
    topics = (f"chat:{key}", f"chat:{agent}", f"stream:{key}")
    until(lambda: all(gateway.redis.exists(topic) for topic in topics), what="all three entries")

    raw: list[Any] = [gateway.redis.xrange(topic) for topic in topics]

    for ((_, fields),) in raw:
        assert sorted(fields) == ["id", "payload"]
        assert str(uuid.UUID(fields["id"])) == fields["id"]
        assert fields["payload"] == json.dumps(json.loads(fields["payload"]), separators=(",", ":"))
    assert len({fields["id"] for ((_, fields),) in raw}) == 3
    first, second = (magent2.Envelope.model_validate_json(entries[0][1]["payload"]) for entries in raw[:2])
    assert first == second or first.model_copy(update={"created_at": second.created_at}) == second


def test_agents_of_its_chat_tool_talk_in_one_conversation(
    site: Server, gateway: Gateway, worker: Callable[..., Worker]
) -> None:
    key, giver, taker = fresh("pair"), fresh("Giver"), fresh("Taker")
    taken = worker(taker)

    answer = magent2.chat_send(gateway, giver, f"agent:{taker}", "take over", key)

    until(lambda: "output" in kinds(site, key), what="the other agent's answer")
    assert answer["published_to"] == [f"chat:{key}", f"chat:{taker}"]
    assert [envelope.id for envelope in taken.read] == [answer["envelope_id"]]
    (message, _) = events(site, key)
    assert (message["kind"], message["by"], message["sender"]) == ("message", "bus:redis", f"agent:{giver}")


def test_failed_run_of_its_worker_is_shown(
    site: Server, token: str, gateway: Gateway, worker: Callable[..., Worker]
) -> None:
    key, agent = fresh("dead"), fresh("Desk")
    worker(agent, magent2.failing)

    gateway.send(key, "user:rosa", f"agent:{agent}", "nonsense")

    until(lambda: "dead_letter" in kinds(site, key), what="the dead letter")
    html = page(site, token, f"/conversations/{key}/")
    assert 'data-kind="dead_letter"' in html
    assert "cannot read" in html
