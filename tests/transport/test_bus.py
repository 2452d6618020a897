"""One contract over every bus (§3.2): the record, HTTP to a real server, a real Redis, memory."""

import threading
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import connection

from conversations.core import principals
from conversations.events import log
from conversations.models import Conversation
from conversations.transport.log_bus import LogBus
from switchboard import BusMessage, HttpBus, IdReused, InMemoryBus, RedisBus, Refused, UnknownPosition
from tests.support.unchecked import from_text

ON_RECORD = pytest.mark.django_db(transaction=True)
TOPICS = ["chat:{c}", "stream:{c}", "chat:Dialogue-{c}"]


@pytest.fixture(scope="module")
def http_bus(served, served_token, tmp_path_factory) -> Iterator[HttpBus]:
    """A bus that spools, as agents have it."""
    with HttpBus(served.url, served_token, spool_dir=tmp_path_factory.mktemp("spool")) as bus:
        yield bus


@pytest.fixture(scope="module")
def redis_bus(redis_server) -> Iterator[RedisBus]:
    """A bus over that Redis."""
    with RedisBus(redis_server.url) as bus:
        yield bus


LOG = pytest.param("log", marks=ON_RECORD)
APART = [pytest.param(name, marks=pytest.mark.any_database) for name in ("memory", "http", "redis")]


@pytest.fixture(params=[LOG, *APART])
def bus(request):
    """Each bus in turn; of them one is in this process's database."""
    if request.param in ("http", "redis"):
        return request.getfixturevalue(f"{request.param}_bus")
    return InMemoryBus() if request.param == "memory" else LogBus(principals.SYSTEM)


@pytest.fixture
def c() -> str:
    """A conversation that no other test has: servers are shared."""
    return uuid4().hex


@pytest.fixture(params=TOPICS)
def topic(request, c) -> str:
    """A conversation's messages, its stream, an agent's post."""
    return request.param.format(c=c)


def message(n, topic, **more):
    payload = {"event": "log", "conversation_id": topic.rpartition(":")[2].removeprefix("Dialogue-"), "n": n}
    return BusMessage(topic=topic, payload=payload, **more)


def publish(bus, topic, *numbers):
    return [bus.publish(topic, message(n, topic)) for n in numbers]


def numbers(messages):
    return [m.payload["n"] for m in messages]


def test_newest_come_in_ascending_order_without_a_place(bus, topic):
    publish(bus, topic, *range(5))

    assert numbers(bus.read(topic, limit=3)) == [2, 3, 4]


def test_what_comes_strictly_after_a_published_id_is_read(bus, topic):
    ids = publish(bus, topic, *range(5))

    assert numbers(bus.read(topic, last_id=ids[1])) == [2, 3, 4]
    assert numbers(bus.read(topic, last_id=ids[1], limit=2)) == [2, 3]
    assert bus.read(topic, last_id=ids[4]) == []


def test_a_reader_goes_on_from_the_id_it_read(bus, topic):
    publish(bus, topic, *range(5))

    first = bus.read(topic, limit=5)[1]

    assert numbers(bus.read(topic, last_id=first.id)) == [2, 3, 4]


@pytest.mark.parametrize("last_id", ["never", "999"])
def test_an_unknown_place_is_refused(bus, topic, last_id):
    publish(bus, topic, 1)

    with pytest.raises(UnknownPosition):
        bus.read(topic, last_id=last_id)


@pytest.mark.parametrize("bus", ["memory", LOG, "http"], indirect=True)
def test_same_id_and_payload_is_one_message(bus, topic):
    again = message(1, topic, id="same")

    assert bus.publish(topic, again) == bus.publish(topic, again) == "same"
    assert numbers(bus.read(topic)) == [1]


@pytest.mark.parametrize("bus", ["memory", LOG, "http"], indirect=True)
def test_same_id_with_another_payload_is_refused(bus, topic):
    bus.publish(topic, message(1, topic, id="same"))

    with pytest.raises(IdReused):
        bus.publish(topic, message(2, topic, id="same"))


def test_redis_keeps_every_entry_and_a_reader_goes_on_from_the_one_it_read(redis_bus, topic):
    for n in (1, 2, 1, 3):
        redis_bus.publish(topic, message(n, topic, id=f"id-{n}"))

    got = redis_bus.read(topic, limit=2)

    assert numbers(redis_bus.read(topic)) == [1, 2, 1, 3]
    assert numbers(got) == [1, 3]
    assert numbers(redis_bus.read(topic, last_id=got[-1].id)) == []


def test_same_id_on_another_topic_is_another_message(bus, c):
    bus.publish(f"signal:a{c}", BusMessage(topic="signal:a", payload={"n": 1}, id="same"))
    bus.publish(f"signal:b{c}", BusMessage(topic="signal:b", payload={"n": 2}, id="same"))

    assert numbers(bus.read(f"signal:b{c}")) == [2]


@ON_RECORD
def test_signals_need_no_conversation(bus, c):
    bus.publish(f"signal:{c}", BusMessage(topic=f"signal:{c}", payload={"n": 1}))

    assert numbers(bus.read(f"signal:{c}")) == [1]
    assert Conversation.objects.count() == 0


def test_what_is_read_is_what_was_published(bus, topic):
    sent = message(1, topic)
    sent.payload["content"] = 'żółć 🪿 \u2028 </script> \\ " \t'

    id_ = bus.publish(topic, sent)

    (got,) = bus.read(topic)
    assert (got.topic, got.payload) == (topic, sent.payload)
    assert bus.read(topic, last_id=id_) == bus.read(topic, last_id=got.id) == []


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_wrong_limits_are_refused(bus, topic, limit):
    with pytest.raises(Refused):
        bus.read(topic, limit=limit)


@pytest.mark.parametrize("topic", ["c1", "chat:", "chat: ", "other:c1", ":c1"])
def test_wrong_topics_are_refused(bus, topic):
    with pytest.raises(Refused):
        bus.publish(topic, BusMessage(topic=topic, payload={"conversation_id": "c1"}))
    with pytest.raises(Refused):
        bus.read(topic)


def test_blocking_without_a_place_reads_only_what_is_new(bus, topic):
    publish(bus, topic, 1)
    got = []

    def read():
        got.extend(bus.read_blocking(topic, block_ms=10_000))
        connection.close()

    reader = threading.Thread(target=read)
    reader.start()
    while reader.is_alive():  # whenever it began to wait, something new comes
        publish(bus, topic, 2)
        reader.join(0.02)

    assert set(numbers(got)) == {2}


def test_blocking_answers_nothing_after_its_time(bus, topic):
    ids = publish(bus, topic, 1)

    start = time.monotonic()
    assert bus.read_blocking(topic, last_id=ids[0], block_ms=50) == []
    assert time.monotonic() - start >= 0.05


def test_blocking_answers_at_once_what_is_there(bus, topic):
    ids = publish(bus, topic, 1, 2)

    assert numbers(bus.read_blocking(topic, last_id=ids[0], block_ms=60_000)) == [2]


def test_blocking_longer_than_a_server_waits_reads_only_what_is_new(bus, topic):
    publish(bus, topic, 1)
    later = threading.Timer(0.2, publish_from_a_thread, (bus, topic, 2))
    later.start()

    assert numbers(bus.read_blocking(topic, block_ms=60_000)) == [2]
    later.join()


def test_blocking_on_an_empty_topic_finds_the_first_message(bus, topic):
    later = threading.Timer(0.2, publish_from_a_thread, (bus, topic, 1))
    later.start()

    assert numbers(bus.read_blocking(topic, block_ms=60_000)) == [1]
    later.join()


def publish_from_a_thread(bus, topic, n):
    publish(bus, topic, n)
    connection.close()


@ON_RECORD
def test_one_envelope_on_two_topics_is_one_event():
    bus = LogBus(principals.SYSTEM)
    payload = {"type": "message", "id": "e1", "conversation_id": "c1", "sender": "agent:A", "content": "x"}

    bus.publish("chat:c1", BusMessage(topic="chat:c1", payload=payload))
    bus.publish("chat:Dialogue", BusMessage(topic="chat:Dialogue", payload=payload))

    assert log.head("c1") == 1
    assert bus.read("chat:Dialogue")[0].payload == payload


@ON_RECORD
def test_a_message_with_half_a_character_stops_no_reader():
    body = '{"type":"message","conversation_id":"c1","sender":"agent:A","content":"half \\ud83d"}'
    message = from_text("chat:c1", body, principals.token_principal("robot"), "m1")
    log.append([message])
    bus = LogBus(principals.SYSTEM)
    whole = {"type": "message", "conversation_id": "c1", "sender": "agent:A", "content": "whole"}
    bus.publish("chat:c1", BusMessage(topic="chat:c1", payload=whole))

    assert [read.payload["content"] for read in bus.read("chat:c1", None, 10)] == ["half ?", "whole"]
