"""Which posts the relay takes, and how it goes through them."""

import asyncio

import pytest
from redis.exceptions import OutOfMemoryError

from conversations.events import log
from conversations.models import Meta, Post, RedisPosition
from conversations.transport import relay_start
from conversations.transport.recorder import relay
from conversations.transport.recorder.relay import Echoes, Relay
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


def post(*names, topic="chat:c", content="x"):
    """Publish as our processes do."""
    messages = [{"type": "message", "id": name, "content": content} for name in names]
    log.append([unchecked("c", message, topic=topic, bus_id=message["id"]) for message in messages])


def swept(relay):
    """Return the bus ids of one sweep, all of them sent."""
    lists = []
    while posts := relay.unsent():
        lists += [post.bus_id for post in posts]
        relay.mark(posts, [post.id for post in posts])
    return lists


def test_what_was_posted_before_redis_was_set_stays_here():
    post("old-1", "old-2")
    relay_start.ensure_start()
    post("new-1")

    assert swept(Relay(Echoes())) == ["new-1"]
    assert Post.objects.filter(sent_at=None).count() == 2
    assert relay_start.unsent().count() == 0


def test_the_line_is_drawn_once_for_good():
    relay_start.ensure_start()
    post("new-1")
    relay_start.ensure_start()

    assert swept(Relay(Echoes())) == ["new-1"]


def test_where_streams_were_read_before_nothing_starts_no_run():
    """The record of a recorder that drew no line yet: what it had not sent is still to be sent."""
    RedisPosition.objects.create(stream="chat:c", last_id="1-0", found_at=0)
    post("unsent")

    assert swept(Relay(Echoes())) == ["unsent"]
    assert Meta.objects.get(name=relay_start.NAME).value == "0"


def test_a_long_backlog_is_read_and_counted_once(monkeypatch, django_assert_max_num_queries):
    monkeypatch.setattr(relay, "BATCH", 10)
    relay_start.ensure_start()
    post(*(f"p-{n}" for n in range(200)))
    first_relay = Relay(Echoes())

    with django_assert_max_num_queries(200) as queries:
        posts = swept(first_relay)

    assert posts == [f"p-{n}" for n in range(200)]
    assert sum("COUNT(" in query["sql"] for query in queries.captured_queries) == 1
    assert first_relay.waiting == 0


def test_large_posts_are_read_a_few_at_a_time_and_all_counted():
    relay_start.ensure_start()
    names = [f"large-{n}" for n in range(12)]
    for name in names:
        post(name, content="x" * 1_000_000)
    relay = Relay(Echoes())

    first = relay.unsent()

    assert [post.bus_id for post in first] == names[:5]
    assert relay.waiting == 12
    relay.mark(first, [post.id for post in first])
    assert swept(relay) == names[5:]
    assert relay.waiting == 0


def test_what_one_sweep_left_the_next_one_takes():
    relay_start.ensure_start()
    post("p-1", "p-2")
    relay = Relay(Echoes())
    posts = relay.unsent()
    relay.mark(posts, [posts[1].id])  # Redis refused the first: its key is not a stream

    assert relay.unsent() == []
    assert [post.bus_id for post in relay.unsent()] == ["p-1"]


class FullAtFirst:
    """A pipeline to a Redis that has no room for the first entry, and some for those after it."""

    def pipeline(self, **_):
        return self

    def execute_command(self, *_):
        pass

    async def execute(self, **_):
        return [OutOfMemoryError("OOM command not allowed"), b"1-0", b"2-0"]


def test_behind_what_redis_did_not_take_nothing_of_its_topic_counts_as_sent():
    relay_start.ensure_start()
    post("p-1", "p-2")
    post("other", topic="chat:d")
    relay = Relay(Echoes())
    posts = relay.unsent()

    sent, error = asyncio.run(relay.send(FullAtFirst(), posts))

    assert [post.bus_id for post in posts if post.id in sent] == ["other"]
    assert isinstance(error, OutOfMemoryError)


def test_a_sweep_that_broke_off_begins_anew():
    relay_start.ensure_start()
    post("p-1")
    relay = Relay(Echoes())
    relay.mark(relay.unsent(), [])

    relay.begin_anew()

    assert [post.bus_id for post in relay.unsent()] == ["p-1"]
