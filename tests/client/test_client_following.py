"""`switchboard.following` at the end of a stream: a restart is followed by a new connection, a refusal is raised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from switchboard import Refused, Unreachable
from switchboard.following import follow
from tests.support.answering import Answer, Request, answering
from tests.support.live import free_port

RESTARTING = {"code": "restarting", "message": "the server stops: connect again"}
UNAVAILABLE = {"code": "unavailable", "message": "the database cannot answer right now. Try again"}
REVOKED = {"code": "token_revoked", "message": "the token was revoked"}


class Feed:
    """Sends one event per connection, then the next of `ends`."""

    def __init__(self, *ends: dict[str, str]) -> None:
        self.ends = list(ends)
        self.places: list[list[str]] = []  # `after` of each connection
        self.refusals: list[bytes] = []  # what a proxy answers first, with the status
        self.refusal_status = 502
        self.token = ""  # the only one that it knows; empty: it knows all
        self.url = ""

    def answer(self, request: Request) -> Answer:
        """Answer one connection."""
        if self.refusals:
            return Answer(self.refusal_status, self.refusals.pop())
        if self.token and request.headers["Authorization"] != f"Bearer {self.token}":
            return Answer(401, b'{"error": {"code": "not_signed_in", "message": "no such token"}}')
        self.places.append(parse_qs(urlsplit(request.path).query).get("after", []))
        number = len(self.places)
        event, end = json.dumps({"n": number}), json.dumps(self.ends[number - 1])
        body = f"id: e.{number}\ndata: {event}\n\nevent: end\ndata: {end}\n\n".encode()
        return Answer(200, body, "text/event-stream")


@pytest.fixture
def feed() -> Iterator[Feed]:
    """A server that restarts once and then revokes the token."""
    made = Feed(RESTARTING, REVOKED, RESTARTING)
    with answering(made.answer) as made.url:
        yield made


def test_a_restart_is_followed_by_another_connection_and_a_refusal_is_raised(feed: Feed) -> None:
    messages = follow(feed.url, "token")

    assert [next(messages).data for _ in range(2)] == [{"n": 1}, {"n": 2}]
    with pytest.raises(Refused, match="the token was revoked") as refusal:
        next(messages)

    assert refusal.value.code == "token_revoked"
    assert feed.places == [[], ["e.1"]]


@pytest.mark.parametrize("body", [b'{"error": "bad gateway"}', b'{"error": null}', b"null", b"<html>", b"[" * 100_000])
def test_an_answer_of_a_proxy_is_tried_again_whatever_it_says(feed: Feed, body: bytes) -> None:
    feed.refusals = [body]
    messages = follow(feed.url, "token")

    assert next(messages).data == {"n": 1}


def test_a_page_in_place_of_the_feed_is_no_feed(feed: Feed, caplog: pytest.LogCaptureFixture) -> None:
    feed.refusals, feed.refusal_status = [b"<html>\n\n<p>Sign in</p>\ndata: {not json\n\n</html>"], 200
    messages = follow(feed.url, "token")

    assert next(messages).data == {"n": 1}
    assert "responded with 200, but not as Switchboard does" in caplog.text


def test_a_feed_that_ends_because_the_database_is_away_is_followed_again(feed: Feed) -> None:
    feed.ends = [UNAVAILABLE, REVOKED]
    messages = follow(feed.url, "token")

    assert [next(messages).data for _ in range(2)] == [{"n": 1}, {"n": 2}]
    assert feed.places == [[], ["e.1"]]


def test_a_server_that_knows_the_token_no_longer_is_followed_with_another(feed: Feed) -> None:
    feed.token, renewed = "first", iter(["second"])
    messages = follow(feed.url, "first", renew=lambda: (feed.url, next(renewed)))

    first = next(messages)
    feed.token = "second"

    assert [first.data, next(messages).data] == [{"n": 1}, {"n": 2}]
    assert feed.places == [[], ["e.1"]]


def test_a_server_that_comes_back_at_another_address_is_followed_there(feed: Feed) -> None:
    feed.token, places = "second", iter([Unreachable("not yet"), (feed.url, "second")])

    def renew() -> tuple[str, str]:
        place = next(places)
        if isinstance(place, Unreachable):
            raise place
        return place

    assert next(follow(f"http://127.0.0.1:{free_port()}", "first", renew=renew)).data == {"n": 1}


def test_an_unknown_token_that_cannot_be_renewed_is_refused(feed: Feed) -> None:
    feed.token = "another"

    with pytest.raises(Refused, match="no such token"):
        next(follow(feed.url, "token"))
