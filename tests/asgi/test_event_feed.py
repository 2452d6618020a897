"""`GET /api/v1/events`: what happens in all conversations, resumed by place, for whom it may be."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from conversations.asgi import event_feed
from tests.support.doors import Caller, said
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
        """Wait for so many events of one conversation; answer what they say."""
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
        assert caller.publish(f"chat:{key}", said(key, str(number))).status == 201


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
        caller.publish(f"chat:{mine}", said(mine, "2", recipient="agent:Desk"))
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
        caller.publish(f"chat:{(key := uuid4().hex)}", said(key, "1", recipient="agent:Feed"))
        notices = [follower.next()]
        while notices[-1][0] != "end":
            notices.append(follower.next())

        assert notices[-1][1]["code"] == "token_revoked"
        assert key not in {fields.get("conversation_id") for _, fields in notices}
        assert follower.answer.read() == b""


def test_followers_are_bounded(server: Server) -> None:
    caller = Caller(server, server.token(uuid4().hex[:12], "viewer"))
    followers = [Follower(caller) for _ in range(event_feed.MOST_EACH)]

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
