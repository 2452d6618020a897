"""The responses door when its record cannot be read, when clients leave early and when one has too many open: every
stream tells its end, and nothing stays behind."""

import asyncio
import json
import sys
import threading
import time

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import override_settings

from conversations.access.accounts import tokens
from conversations.asgi.responses import follow_events
from conversations.asgi.responses.follow_events import Follower, Followers
from conversations.core.errors import Unavailable
from conversations.core.principals import SYSTEM
from conversations.events import commit_listeners, log
from conversations.events.log.records import Stored
from conversations.models import Response
from conversations.runs.responses.create import receive
from tests.support import stand_in
from tests.support.live import until
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unreadable(monkeypatch):
    """A record that only the door cannot read, until the event is set; no notification comes."""
    mended, read = threading.Event(), log.read_after

    def broken(key, after, limit=100):
        if not mended.is_set():
            raise OperationalError("could not connect to server")
        return read(key, after, limit)

    monkeypatch.setattr("conversations.asgi.responses.shared.READ_PATIENCE", 0.6)
    monkeypatch.setattr(follow_events, "should_drop", lambda _: True)
    monkeypatch.setattr(follow_events.log, "read_after", broken)
    return mended


def has_gone_on():
    stand_in.RELEASED.set()
    until(lambda: Response.objects.get().status == "completed", what="the run to go on without its reader")


def test_a_stream_that_cannot_be_read_further_ends_with_an_error_a_failure_and_done(desk, unreadable):
    answer = desk.create("hold", stream=True)

    *_, error, failed = answer.events
    assert (error["type"], error["error"]["code"]) == ("error", "record_unreadable")
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert answer.writes[-1] == b"data: [DONE]\n\n"
    has_gone_on()


def test_a_json_answer_that_cannot_be_read_is_the_response_in_progress(desk, unreadable):
    answer = desk.create("hold")

    assert (answer.status, answer.json["status"]) == (200, "in_progress")
    assert answer.json["incomplete_details"] == {"reason": "record_unreadable"}
    assert answer.json["id"] == Response.objects.get().id
    has_gone_on()


def test_a_socket_that_cannot_be_read_further_is_told_so_and_closed(desk, unreadable):
    async def talk():
        async with desk.socket() as wire:
            wire.create("hold")
            while (event := await wire.event())["type"] != "error":
                pass
            return event, await wire.event(), await wire.next()

    error, failed, closed = desk.run(talk)

    assert (error["error"]["code"], failed["type"]) == ("record_unreadable", "response.failed")
    assert closed == {"type": "websocket.close", "code": 1011}
    has_gone_on()


def test_an_error_of_ours_ends_a_stream_and_a_socket_as_well(desk, monkeypatch):
    def broken(encoder, event):
        raise ZeroDivisionError

    monkeypatch.setattr("conversations.asgi.responses.stream_encoder.Encoder.encode", broken)

    async def talk():
        async with desk.socket() as wire:
            wire.create("hello")
            while (event := await wire.event())["type"] != "error":
                pass
            return event, await wire.event(), await wire.next()

    *_, error, failed = desk.create("hello", stream=True).events
    frames, ended, closed = desk.run(talk)

    assert [event["error"]["code"] for event in (error, frames)] == ["server_error"] * 2
    assert [event["type"] for event in (failed, ended)] == ["response.failed"] * 2
    assert closed == {"type": "websocket.close", "code": 1011}


def test_a_read_that_fails_for_a_moment_costs_nothing(desk, unreadable, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.shared.READ_PATIENCE", 20.0)
    threading.Timer(0.4, unreadable.set).start()

    assert desk.create("hello").json["status"] == "completed"


def test_clients_that_leave_while_their_request_is_stored_leave_no_follower(desk, monkeypatch):
    may_store, stored = threading.Event(), []

    def slow(*args, **more):
        assert may_store.wait(60)
        stored.append(receive(*args, **more))
        return stored[-1]

    monkeypatch.setattr("conversations.asgi.responses.shared.create.receive", slow)

    async def broken_off(n):
        async with desk.socket() as wire:
            wire.create("hello", store=False, conversation=f"kept-{n}")
            assert (await wire.next())["type"] == "websocket.accept"
            await asyncio.to_thread(until, lambda: desk.context._askers._work_queue.qsize() + 4 == 20)

    async def all_leave():
        await asyncio.gather(*map(broken_off, range(20)))
        may_store.set()
        await desk.context.do(until, lambda: desk.context._askers._work_queue.qsize() == 0)
        return desk.context.followers.count, len(desk.runtime.socket_registry.responses)

    assert desk.run(all_leave) == (0, 0)
    assert stored


def test_a_head_told_in_another_thread_wakes_a_follower():
    async def wait():
        asyncio.get_running_loop().set_debug(True)  # an event set from another thread is an error then
        followers = Followers()
        followers.listen()
        follower = followers.follow("c", 0)
        try:
            waiting = asyncio.create_task(follower.news(20))
            await asyncio.sleep(0)
            await asyncio.to_thread(commit_listeners.notify_imported, {"c": 7})
            async with asyncio.timeout(60):
                await waiting
            return follower.head
        finally:
            await followers.stop()

    assert asyncio.run(wait()) == 7


def test_what_followers_hold_together_is_bounded_and_given_back(monkeypatch):
    monkeypatch.setattr(follow_events, "MAX_HELD", 10_000)
    followers = Followers()
    some = [Stored("c", seq, "token", 0, "system", None, None, None, "x" * 1000) for seq in range(1, 100)]
    every = [followers.follow("c", 0) for _ in range(50)]

    for follower in every:
        follower.offer(some)

    assert 10_000 <= followers.budget.size < 12_000
    assert all(follower.is_behind for follower in every)
    for follower in every:
        followers.leave(follower)
    assert (followers.budget.size, followers.count) == (0, 0)


def test_who_took_nothing_for_longest_lets_go_for_who_reads_on():
    followers = Followers(10_000)
    stuck, reading = followers.follow("c", 0), followers.follow("c", 0)
    events = [Stored("c", seq, "token", 0, "system", None, None, None, "x" * 1000) for seq in range(1, 40)]
    stuck.offer(events[:9])
    assert stuck.is_behind is False

    for event in events:
        reading.offer([event])
        assert [event_.seq for event_ in reading.take()] == [event.seq]
    reading.offer(events[-1:])
    stuck.offer(events[9:])

    assert followers.budget.size <= 10_000 + sys.getsizeof("x" * 1000)
    assert stuck.is_behind
    followers.leave(stuck)
    followers.leave(reading)
    assert (followers.budget.size, len(followers.budget._holders)) == (0, 0)


def test_a_slow_reader_does_not_keep_others_from_what_is_new():
    followers = Followers(10_000)
    slow, quick = followers.follow("c", 0), followers.follow("d", 0)
    slow.offer([Stored("c", seq, "token", 0, "system", None, None, None, "x" * 1000) for seq in range(1, 40)])
    assert followers.budget.size >= 10_000

    quick.offer([Stored("d", 1, "token", 0, "system", None, None, None, "y")])

    assert [event_.seq for event_ in quick.take()] == [1]
    assert (slow.take(), slow.is_behind) == ([], True)


def test_requests_and_sockets_of_one_principal_are_bounded_together(desk):
    bounded = override_settings(
        CONFIG=settings.CONFIG.model_copy(update={"responses_per_principal": 2, "sockets_per_principal": 1})
    )
    other, counted = tokens.make_token(SYSTEM, "other", "operator"), []

    async def talk():
        async with desk.socket() as wire, desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            assert (await wire.next())["type"] == "websocket.accept"
            await asking.writes(3)
            counted.append((len(desk.runtime.socket_registry.responses), len(desk.runtime.socket_registry.sockets)))
            async with desk.asking({"model": MODEL, "input": "x"}) as third, desk.socket() as fourth:
                refused, upgrade = await third.answer(), await fourth.next()
            head = {"authorization": f"Bearer {other}"}
            async with desk.asking({"model": MODEL, "input": "x"}, headers=head) as fifth:
                welcome = await fifth.answer()
            stand_in.RELEASED.set()
            await asking.answer()
        return refused, upgrade, welcome

    with bounded:
        refused, upgrade, welcome = desk.run(talk)

    assert (refused.status, refused.json["error"]["type"]) == (429, "too_many_requests")
    assert upgrade["status"] == 429
    assert welcome.json["status"] == "completed"
    assert counted == [(2, 0)]
    assert not desk.runtime.socket_registry._open
    assert not desk.runtime.socket_registry.responses


def test_a_stream_whose_token_is_revoked_fails_within_a_second_without_a_notification(desk, monkeypatch):
    monkeypatch.setattr("conversations.access.action_context.commit_listeners.notify_revoked", lambda: None)

    async def talk():
        desk.runtime.socket_registry.start()
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            before = len(await asking.writes(5))
            await desk.context.do(tokens.revoke_token, SYSTEM, "asker-operator")
            revoked_at = time.monotonic()
            answer = await asking.answer()
            took = time.monotonic() - revoked_at
            stand_in.RELEASED.set()
        await desk.runtime.socket_registry.stop()
        return answer.writes[before:], took

    (error, failed, done), took = desk.run(talk)

    assert json.loads(error.split(b"data: ")[1])["error"]["code"] == "token_revoked"
    assert failed.startswith(b"event: response.failed\n")
    assert done == b"data: [DONE]\n\n"
    assert took < 20  # by itself it would wait until it is let go


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "status", "reason"),
    [("the record", "in_progress", "record_unreadable"), ("the token", "failed", None)],
)
def test_a_json_answer_that_was_begun_ends_as_its_response_is(desk, monkeypatch, trouble, status, reason):
    monkeypatch.setattr("conversations.access.action_context.commit_listeners.notify_revoked", lambda: None)
    monkeypatch.setattr("conversations.asgi.responses.endpoint.SILENCE", 0.1)

    async def unreadable(*given):
        raise Unavailable("the record cannot be read", code="record_unreadable")

    async def talk():
        desk.runtime.socket_registry.start()
        async with desk.asking({"model": MODEL, "input": "hold"}) as asking:
            await asking.writes(1)
            if trouble == "the token":
                await desk.context.do(tokens.revoke_token, SYSTEM, "asker-operator")
            else:
                monkeypatch.setattr(desk.context.followers, "next", unreadable)
            answer = await asking.answer()
            stand_in.RELEASED.set()
        await desk.runtime.socket_registry.stop()
        return answer

    answer = desk.run(talk)

    assert answer.writes[0] == b"\n"  # the answer was begun
    assert answer.json["status"] == status
    assert (answer.json["incomplete_details"] or {}).get("reason") == reason
    assert (answer.json["error"] or {}).get("code") == ("token_revoked" if reason is None else None)


def test_offers_that_were_overtaken_are_given_back():
    follower = Follower("c", 0)
    follower.offer([Stored("c", 1, "token", 0, "system", None, None, None, "x")])
    follower.last = 1

    assert follower.take() == []
    assert follower._budget.size == 0
