"""`GET /api/v1/events`: what happens in all conversations, resumed by place, for whom it may be."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest

from conversations.asgi import event_feed
from tests.support.doors import Caller, message_payload
from tests.support.live import Server, until
from tests.support.revocation import LAW, holder, pause_until, revoke
from tests.support.tiers import variants


class Follower:
    """A connection to the feed."""

    def __init__(self, caller: Caller, query: str = "", **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", caller.server.port, timeout=60)
        headers = {"Authorization": f"Bearer {caller.token}", "Accept": "text/event-stream"} | headers
        self._connection.request("GET", f"/api/v1/events{query}", headers=headers)
        self.answer = self._connection.getresponse()
        self.place = ""

    def next(self) -> tuple[str, dict[str, Any]]:
        """Wait for the next event or notice: its name and what it says."""
        name, lines = "event", list[str]()
        while line := self.answer.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "id":
                self.place = value
            elif field == "event":
                name = value
            elif field == "data":
                lines.append(value)
            elif line == "\n" and lines:
                return name, json.loads("\n".join(lines))
        raise AssertionError("the feed ended")

    def texts(self, key: str, number: int) -> list[str]:
        """Wait for so many events of one conversation; return what they say."""
        said_: list[str] = []
        while len(said_) < number:
            name, event = self.next()
            assert name == "event"
            if event["conversation_id"] == key:
                said_.append(event["body"]["content"])
        return said_

    def close(self) -> None:
        """Hang up."""
        self.answer.close()
        self._connection.close()


@contextmanager
def following(caller: Caller, query: str = "", **headers: str) -> Iterator[Follower]:
    """Follow the feed in the block, from when it has begun."""
    follower = Follower(caller, query, **headers)
    try:
        assert follower.answer.status == 200
        yield follower
    finally:
        follower.close()


def publish(caller: Caller, key: str, *numbers: int) -> None:
    """Say some numbers in a conversation."""
    for number in numbers:
        assert caller.publish(f"chat:{key}", message_payload(key, str(number))).status == 201


def test_who_comes_back_with_a_place_misses_nothing_and_gets_nothing_twice(caller: Caller) -> None:
    key, read = uuid4().hex, list[str]()
    with following(caller) as follower:
        publish(caller, key, 1, 2)
        read += follower.texts(key, 2)
        place = follower.place
    publish(caller, key, 3)

    with following(caller, **{"Last-Event-ID": place}) as follower:
        publish(caller, key, 4)
        read += follower.texts(key, 2)
        place = follower.place
    publish(caller, key, 5)
    with following(caller, f"?after={place}") as follower:
        read += follower.texts(key, 1)

    assert read == ["1", "2", "3", "4", "5"]


def test_one_conversation_is_followed_alone(caller: Caller) -> None:
    key = uuid4().hex
    publish(caller, key, 1)
    publish(caller, uuid4().hex, 2)

    with following(caller, f"?conversation={key}&after=0") as follower:
        publish(caller, uuid4().hex, 3)
        publish(caller, key, 4)
        events = [follower.next()[1] for _ in range(2)]

    assert [(event["conversation_id"], event["seq"]) for event in events] == [(key, 1), (key, 2)]


def test_agent_is_told_of_conversations_that_it_may_view(caller: Caller, agent: Caller) -> None:
    theirs, mine = uuid4().hex, uuid4().hex
    with following(agent) as follower:
        publish(caller, theirs, 1)
        caller.publish(f"chat:{mine}", message_payload(mine, "2", recipient="agent:Desk"))
        name, event = follower.next()

    assert (name, event["conversation_id"]) == ("event", mine)


def test_place_of_another_history_is_told_as_a_gap(caller: Caller) -> None:
    key = uuid4().hex
    with following(caller, "?after=elsewhere.1") as follower:
        assert follower.next()[0] == "gap"
        publish(caller, key, 1)
        assert follower.texts(key, 1) == ["1"]

    answer = caller.get("/api/v1/events?after=elsewhere.1")
    assert (answer.status, answer.body["error"]["code"]) == (400, "unknown_position")


def test_pages_lead_to_one_another(caller: Caller) -> None:
    key, read, place = uuid4().hex, list[str](), "0"
    publish(caller, key, *range(5))

    while (answer := caller.get(f"/api/v1/events?conversation={key}&after={place}")).body["items"]:
        read += [item["body"]["content"] for item in answer.body["items"]]
        place = answer.body["cursor"]

    assert read == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("role", variants(["viewer", "agent", "operator", "approver", "auditor", "admin"], quick=2))
def test_revoked_token_is_told_within_a_second_and_nothing_else(server: Server, caller: Caller, role: str) -> None:
    name = f"feed-{role}-{uuid4().hex[:12]}"
    follower_caller = holder(server, name, role, agent="Feed" if role == "agent" else "")
    with following(follower_caller) as follower:
        pause_until(revoke(server, name) + LAW)
        caller.publish(f"chat:{(key := uuid4().hex)}", message_payload(key, "1", recipient="agent:Feed"))
        notices = [follower.next()]
        while notices[-1][0] != "end":
            notices.append(follower.next())

        assert notices[-1][1]["code"] == "token_revoked"
        assert key not in {fields.get("conversation_id") for _, fields in notices}
        assert follower.answer.read() == b""


def test_followers_are_bounded(server: Server) -> None:
    caller = Caller(server, server.token(uuid4().hex[:12], "viewer"))
    followers = [Follower(caller) for _ in range(event_feed.MAX_FOLLOWERS_EACH)]

    refused = Follower(caller)
    assert (refused.answer.status, json.loads(refused.answer.read())["error"]["code"]) == (429, "too_many")
    for follower in [*followers, refused]:
        follower.close()

    def is_let_in() -> bool:
        again = Follower(caller)
        again.close()
        return again.answer.status == 200

    until(is_let_in, what="room for another follower")


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", "?after=1.x", "?before=1", "?after=" + "9" * 30])
def test_wrong_places_are_refused(caller: Caller, query: str) -> None:
    assert caller.get(f"/api/v1/events{query}").status == 400


@pytest.mark.thorough
def test_quiet_feed_is_kept_alive(caller: Caller) -> None:
    """By comments with the place: a proxy hangs up on a line where nothing passes."""
    with following(caller, f"?conversation={uuid4().hex}") as follower:
        lines = [follower.answer.readline().decode() for _ in range(6)]

    assert lines[:3] == ["retry: 1000\n", lines[1], "\n"]
    assert (lines[3], lines[4][:4], lines[5]) == (": keepalive\n", "id: ", "\n")
    place = lines[4].removeprefix("id: ").strip()
    assert caller.get(f"/api/v1/events?after={place}").status == 200


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What is closed with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.thorough
def test_reader_that_does_not_read_is_cut_off_and_comes_back_to_the_rest(
    server: Server, caller: Caller, stack: ExitStack
) -> None:
    """While it is connected the server holds no more for it than one read of the record."""
    key, number = uuid4().hex, 40
    assert server.process is not None
    pid = server.process.pid
    before, lines = _resident_mb(pid), _sockets(pid)
    followers = [stack.enter_context(closing(_Idle(caller, key))) for _ in range(4)]
    for n in range(number):  # 20 MB: no buffer of a socket takes that
        answer = caller.publish(f"chat:{key}", message_payload(key, f"{n} " + "x" * 500_000))
        assert answer.status == 201, answer

    assert _sockets(pid) >= lines + len(followers)
    until(lambda: _sockets(pid) < lines + len(followers), within=120, what="the server to hang up on a reader")
    assert _resident_mb(pid) - before < 150
    until(lambda: _sockets(pid) <= lines, within=120, what="the server to hang up on all of them")

    ends = [follower.read_on() for follower in followers]

    for texts, place, is_cut in ends:
        assert is_cut
        assert len(texts) < number
        while items := (page := caller.get(f"/api/v1/events?conversation={key}&after={place}").body)["items"]:
            texts += [item["body"]["content"] for item in items]
            place = page["cursor"]
        assert [text.split(" ")[0] for text in texts] == [str(n) for n in range(number)]


class _Idle:
    """A follower that reads the head and then, for as long as the server bears it, nothing."""

    def __init__(self, caller: Caller, key: str) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self._socket.settimeout(100)
        self._socket.connect(("127.0.0.1", caller.server.port))
        head = f"GET /api/v1/events?conversation={key}&after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Authorization: Bearer {caller.token}\r\nAccept: text/event-stream\r\n\r\n"
        self._socket.sendall(head.encode())
        assert self._socket.recv(12) == b"HTTP/1.1 200"

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def read_on(self) -> tuple[list[str], str, bool]:
        """Read what had come when the line was cut: the texts of whole events, the last place, and whether the body
        has no end."""
        data = b""
        with suppress(ConnectionError):
            while more := self._socket.recv(1 << 20):
                data += more
        events = re.findall(rb"id: (\S+)\ndata: (\{.*\})\n\n", data)
        texts = [json.loads(body)["body"]["content"] for _, body in events]
        return texts, events[-1][0].decode() if events else "0", b"0\r\n\r\n" not in data[-20:]


def _resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def _sockets(pid: int) -> int:
    number = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):  # closed by now
            number += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
    return number


def test_revoked_reader_gets_nothing_after_a_second(server: Server, caller: Caller) -> None:
    """Law H, with no notification: events go on, and the last one that came was said within a second of it."""
    key, name = uuid4().hex, uuid4().hex[:12]
    done, times = threading.Event(), dict[str, float]()
    token = server.token(name, "viewer")

    def talk() -> None:
        number = 0
        while not done.wait(0.02):
            times[str(number)] = time.monotonic()
            publish(caller, key, number)
            number += 1

    talker = threading.Thread(target=talk, daemon=True)
    with following(Caller(server, token), f"?conversation={key}&after=0") as follower:
        talker.start()
        assert follower.next()[0] == "event"
        revoked_at = revoke(server, name)
        last = ""
        while (frame := follower.next())[0] == "event":
            last = frame[1]["body"]["content"]
        done.set()
        talker.join(60)

    assert frame[1]["code"] == "token_revoked"
    assert times[last] - revoked_at <= 1.0  # by when it was said, which no slow reader puts off
