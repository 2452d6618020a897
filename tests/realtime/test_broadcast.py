"""The broadcast between processes: heads and revocations by Redis, and what becomes of it without Redis."""

import asyncio
import json
import threading
import time

import pytest
from channels.layers import get_channel_layer
from django.test import override_settings

from conversations.core import broadcast_sender, principals
from conversations.core.broadcast_sender import BroadcastSender
from conversations.events import commit_listeners, log
from conversations.events.log import bounded_reads, read_many
from conversations.realtime import broadcast_listener, hub, state_topics
from conversations.realtime.broadcast_listener import BroadcastListener
from conversations.realtime.hub import Hub
from conversations.realtime.socket_writer import SocketWriter
from conversations.realtime.state_topics import ConversationListTopic
from tests.support.live import until
from tests.support.protocol_client import Client, Line
from tests.support.services import RedisServer, running
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def redis():
    with running(RedisServer()) as server:
        yield server


def close_broadcast_sender():
    """Close this process's sender, so that the next test starts its own."""
    if (made := broadcast_sender.sender()) is not None:
        made.close()
    broadcast_sender.started_sender.cache_clear()


@pytest.fixture
def layer(redis):
    """This process has a channel layer, as with SWITCHBOARD_REDIS_URL."""
    host = {"address": redis.url, "socket_timeout": 2, "socket_connect_timeout": 2}
    backend = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [host]}}
    broadcast_sender.started_sender.cache_clear()  # an earlier test may have had none
    with override_settings(CHANNEL_LAYERS={"default": backend}):
        yield redis
        close_broadcast_sender()


@pytest.fixture
def elsewhere(layer, monkeypatch):
    """Another process: what is appended from now on rings there, and is heard here by the layer alone."""
    other = BroadcastSender()
    other.start()

    def ring(stored):
        other.say({event.conversation: event.seq for event in stored})

    monkeypatch.setattr(commit_listeners, "notify_committed", ring)
    monkeypatch.setattr(hub, "HEAL_EVERY", 3600)
    yield other
    other.close()


def event(n, key="c"):
    return unchecked(key, {"event": "log", "n": n}, principals.token_principal("t"))


async def reaches(lines, seq, within=60):
    async with asyncio.timeout(within):
        while any(line.client.last < seq for line in lines):
            for line in lines:
                line.deliver()
            await asyncio.sleep(0.005)


async def hears(listener):
    async with asyncio.timeout(60):
        while listener.state != "ok":  # noqa: ASYNC110  # the ear tells nobody
            await asyncio.sleep(0.005)


async def following(work, count=1, mode="data"):
    """Run `work` with a hub that hears, and clients who are level with an empty conversation."""
    running_hub, listener = Hub(epoch="e"), BroadcastListener()
    running_hub.start()
    listener.start()
    lines = [Line(running_hub, Client(), "c", mode) for _ in range(count)]
    try:
        for line in lines:
            line.connect()
        await hears(listener)
        await work(running_hub, listener, lines)
    finally:
        for line in lines:
            line.cut()
        await listener.stop()
        await running_hub.stop()
        running_hub.readers.shutdown()


@pytest.mark.parametrize("mode", ["data", "html"])
def test_what_another_process_commits_is_read_once_for_all(elsewhere, mode, monkeypatch):
    reads, read = [], read_many.read_after_many
    monkeypatch.setattr(read_many, "read_after_many", lambda places: reads.append(places) or read(places))
    own_reads = []
    read_after = log.read_after

    async def work(running_hub, listener, lines):
        monkeypatch.setattr(log, "read_after", lambda *given: own_reads.append(given) or read_after(*given))
        for n in range(5):
            await asyncio.to_thread(log.append, [event(n)])
        await reaches(lines, 5)

    asyncio.run(following(work, count=30, mode=mode))

    assert 1 <= len(reads) <= 5
    assert own_reads == []


@pytest.mark.slow
def test_rows_of_two_processes_come_in_order_and_without_holes(elsewhere, monkeypatch):
    """Rings of this process and hints of the other race; the ring of frames stays gapless."""
    far = commit_listeners.notify_committed

    async def work(running_hub, listener, lines):
        def near_or_far(stored):
            if stored[0].seq % 3:
                far(stored)
            else:
                running_hub._on_committed(stored)

        monkeypatch.setattr(commit_listeners, "notify_committed", near_or_far)
        for n in range(200):
            await asyncio.to_thread(log.append, [event(n)])
        await reaches(lines, 200)
        for line in lines:
            assert [seq for seq, _ in line.client.seen] == list(range(1, 201))
        ring = running_hub.feeds["c", "data"].ring
        assert all(a.last + 1 == b.first for a, b in zip(ring, list(ring)[1:], strict=False))

    asyncio.run(following(work, count=3))


def test_a_hint_of_more_than_there_is_hurts_nobody(elsewhere):
    async def work(running_hub, listener, lines):
        elsewhere.say({"c": 1 << 50, "unknown": 7})
        await asyncio.to_thread(log.append, [event(0)])
        await reaches(lines, 1)
        await asyncio.to_thread(log.append, [event(1)])
        await reaches(lines, 2)

    asyncio.run(following(work))


def test_what_is_no_word_of_ours_is_passed_over(elsewhere):
    async def work(running_hub, listener, lines):
        for wrong in (
            {"type": "other"},
            {"type": broadcast_sender.KIND, "heads": 7},
            {"type": broadcast_sender.KIND, "heads": [["c"]]},
        ):
            await get_channel_layer().group_send(broadcast_sender.GROUP, wrong)
        elsewhere_redis = await asyncio.to_thread(lambda: elsewhere)
        assert elsewhere_redis.trouble == ""
        await asyncio.to_thread(log.append, [event(0)])
        await reaches(lines, 1)
        assert listener.state == "ok"

    asyncio.run(following(work))


def test_raw_bytes_on_the_channel_are_passed_over(elsewhere, layer):
    async def work(running_hub, listener, lines):
        name = get_channel_layer()._get_group_channel_name(broadcast_sender.GROUP)
        assert await asyncio.to_thread(layer.client().publish, name, b"\xc1 no msgpack") >= 1
        await asyncio.to_thread(log.append, [event(0)])
        await reaches(lines, 1)

    asyncio.run(following(work))


def test_the_list_hears_of_other_processes(elsewhere, monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 3600)
    sent = []

    async def send(message):
        sent.append(json.loads(message["text"]))

    async def work(running_hub, listener, lines):
        fleet = ConversationListTopic()
        fleet.start()
        view = state_topics.StateSubscription(fleet, SocketWriter(send, None), failed=lambda error: None)
        await asyncio.to_thread(log.append, [event(0, "new")])
        async with asyncio.timeout(60):
            while not any(row["key"] == "new" for frame in sent[1:] for row in frame["rows"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        view.close()
        await fleet.stop()

    asyncio.run(following(work))


def test_rows_that_nobody_rang_for_are_found_by_the_next_look(monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 0.02)
    monkeypatch.setattr(state_topics, "should_drop", lambda _: True)
    sent = []

    async def send(message):
        sent.extend((row["key"], row["version"]) for row in json.loads(message["text"])["rows"])

    async def work():
        fleet = ConversationListTopic()
        fleet.start()
        view = state_topics.StateSubscription(fleet, SocketWriter(send, None), failed=lambda error: None)
        for n in range(3):
            await asyncio.to_thread(log.append, [event(n, "new")])
            async with asyncio.timeout(10):
                while ("new", n + 1) not in sent:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        view.close()
        await fleet.stop()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("on_news", "flag"), [(commit_listeners.on_revoked, "is_revoked"), (commit_listeners.on_audited, "is_audited")]
)
def test_a_revocation_and_an_audit_entry_elsewhere_are_heard_of(elsewhere, on_news, flag):
    async def work(running_hub, listener, lines):
        received = asyncio.Event()
        stop = on_news(received.set)
        elsewhere.say({}, **{flag: True})
        await asyncio.wait_for(received.wait(), 60)
        stop()

    asyncio.run(following(work))


def test_who_looks_elsewhere_is_heard_and_nothing_of_oneself(elsewhere):
    async def work(running_hub, listener, lines):
        received = []
        stop = commit_listeners.on_presence(lambda process, words: received.append((process, words)))
        broadcast_sender.sender().say_presence({("here", "c"): (("otto", "looking"),)})
        elsewhere.say_presence({("here", "c"): (("vera", "typing"),), ("said", "c", "vera"): "typing"})
        async with asyncio.timeout(60):
            while not received:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        stop()
        ((process, words),) = received
        assert process == elsewhere.me
        assert json.loads(json.dumps(words)) == [["here", "c", [["vera", "typing"]]], ["said", "c", "vera", "typing"]]

    asyncio.run(following(work))


def test_its_own_words_are_not_heard_twice(layer, monkeypatch):
    received = []

    async def work(running_hub, listener, lines):
        stop = commit_listeners.on_remote_heads(received.append)
        await asyncio.to_thread(log.append, [event(0)])
        await reaches(lines, 1)
        before = listener.heard_at
        async with asyncio.timeout(60):
            while listener.heard_at == before:  # noqa: ASYNC110  # the next beat came: what was said before it did, too
                await asyncio.sleep(0.01)
        stop()

    asyncio.run(following(work))

    assert received == []


def test_a_dead_layer_holds_nobody_up_and_comes_back(monkeypatch, caplog):
    monkeypatch.setattr(broadcast_listener, "SILENCE", 1.5)
    with running(RedisServer()) as redis:
        backend = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [redis.url]}}
        with override_settings(CHANNEL_LAYERS={"default": backend}):

            async def work(running_hub, listener, lines):
                redis.kill()
                start = time.monotonic()
                for n in range(50):
                    await asyncio.to_thread(log.append, [event(n)])
                assert time.monotonic() - start < 25  # a second and a half each, if it waited
                await reaches(lines, 50)
                async with asyncio.timeout(60):
                    while listener.state == "ok":  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                await asyncio.to_thread(redis.start)
                async with asyncio.timeout(60):
                    while listener.state != "ok":  # noqa: ASYNC110
                        await asyncio.sleep(0.02)

            asyncio.run(following(work))
            close_broadcast_sender()

    assert [r.levelname for r in caplog.records if r.name == broadcast_sender.__name__] == ["WARNING", "WARNING"]


def test_a_hung_layer_holds_nobody_up():
    with running(RedisServer()) as redis:
        backend = {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [{"address": redis.url, "socket_timeout": 0.5}]},
        }
        with override_settings(CHANNEL_LAYERS={"default": backend}):
            sender = BroadcastSender()
            sender.start()
            redis.hang()

            start = time.monotonic()
            for n in range(20_000):
                sender.say({f"c{n}": 1})
            assert time.monotonic() - start < 60  # half a second each, if it waited
            until(lambda: sender.trouble, what="the trouble to be noticed")
            assert sender.dropped > 0
            redis.go_on()
            until(lambda: not sender.trouble, within=60, what="the layer to be back")
            sender.close()


def test_tails_are_read_by_share_and_in_order():
    log.append([event(n, key) for key in ("a", "b") for n in range(30)])

    events_read, is_whole = read_many.read_after_many({"a": 10, "b": 29, "nobody": 0})

    assert is_whole
    assert [e.seq for e in events_read["a"]] == list(range(11, 31))
    assert [(e.conversation, e.seq) for e in events_read["b"]] == [("b", 30)]
    assert events_read.keys() == {"a", "b"}
    assert events_read["a"] == log.read_after("a", 10)


def test_tails_stop_past_their_size(monkeypatch):
    monkeypatch.setattr(bounded_reads, "READ_BYTES", 100)
    log.append([event(n) for n in range(30)])

    events_read, is_whole = read_many.read_after_many({"c": 0})

    assert not is_whole
    assert 1 < len(events_read["c"]) < 30


def test_a_listener_that_goes_while_it_is_told_costs_no_other_its_word():
    received, stops = [], []
    for n in range(4):

        def listen(_, n=n):
            received.append(n)
            if n == 1:
                stops[0](), stops[1]()

        stops.append(commit_listeners.on_committed(listen))
    try:
        commit_listeners.notify_committed([])
    finally:
        [stop() for stop in stops[2:]]

    assert received == [0, 1, 2, 3]


def test_two_threads_with_a_first_message_start_one_sender(layer, monkeypatch):
    class Slow(BroadcastSender):
        def __init__(self):
            both.wait(0.2)
            super().__init__()

    both, made = threading.Event(), []
    monkeypatch.setattr(broadcast_sender, "BroadcastSender", Slow)
    threads = [threading.Thread(target=lambda: made.append(broadcast_sender.sender())) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert len(made) == 2
    assert made[0] is made[1]


def test_a_listener_that_has_just_begun_waits_for_its_first_notification(layer):
    listener = BroadcastListener()
    listener._sender, listener._began_at = BroadcastSender(), time.monotonic()

    assert listener.state == "waiting for the first notification"
    listener._began_at -= broadcast_listener.SILENCE
    assert listener.state == "nothing heard for 4 s"
