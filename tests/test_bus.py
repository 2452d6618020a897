"""One contract over every transport of this process (design 3.2)."""

import threading
import time

import pytest
from django.db import connection

from conversations import log, principals
from conversations.bus import BusMessage, InMemoryBus, LogBus
from conversations.errors import IdReused, Invalid, UnknownPosition
from conversations.models import Conversation

pytestmark = pytest.mark.django_db(transaction=True)
BUSES = {"memory": InMemoryBus, "log": lambda: LogBus(principals.SYSTEM)}
TOPICS = ["chat:c1", "stream:c1", "chat:Dialogue"]


@pytest.fixture(params=BUSES)
def bus(request):
    return BUSES[request.param]()


def message(n, topic="chat:c1", **more):
    payload = {"event": "log", "conversation_id": "c1", "n": n}
    return BusMessage(topic=topic, payload=payload, **more)


def publish(bus, topic, *numbers):
    return [bus.publish(topic, message(n, topic)) for n in numbers]


def numbers(messages):
    return [m.payload["n"] for m in messages]


@pytest.mark.parametrize("topic", TOPICS)
def test_newest_come_in_ascending_order_without_a_place(bus, topic):
    publish(bus, topic, *range(5))

    assert numbers(bus.read(topic, limit=3)) == [2, 3, 4]


@pytest.mark.parametrize("topic", TOPICS)
def test_what_comes_strictly_after_a_published_id_is_read(bus, topic):
    ids = publish(bus, topic, *range(5))

    assert numbers(bus.read(topic, last_id=ids[1])) == [2, 3, 4]
    assert numbers(bus.read(topic, last_id=ids[1], limit=2)) == [2, 3]
    assert bus.read(topic, last_id=ids[4]) == []


@pytest.mark.parametrize("topic", TOPICS)
def test_a_reader_goes_on_from_the_id_it_read(bus, topic):
    publish(bus, topic, *range(5))

    first = bus.read(topic, limit=5)[1]

    assert numbers(bus.read(topic, last_id=first.id)) == [2, 3, 4]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("last_id", ["never", "999"])
def test_an_unknown_place_is_refused(bus, topic, last_id):
    publish(bus, topic, 1)

    with pytest.raises(UnknownPosition):
        bus.read(topic, last_id=last_id)


def test_same_id_and_payload_is_one_message(bus):
    again = message(1, id="same")

    assert bus.publish("chat:c1", again) == bus.publish("chat:c1", again) == "same"
    assert numbers(bus.read("chat:c1")) == [1]


@pytest.mark.parametrize("topic", TOPICS)
def test_same_id_with_another_payload_is_refused(bus, topic):
    bus.publish(topic, message(1, id="same"))

    with pytest.raises(IdReused):
        bus.publish(topic, message(2, id="same"))


def test_same_id_on_another_topic_is_another_message(bus):
    bus.publish("signal:a", BusMessage(topic="signal:a", payload={"n": 1}, id="same"))
    bus.publish("signal:b", BusMessage(topic="signal:b", payload={"n": 2}, id="same"))

    assert numbers(bus.read("signal:b")) == [2]


def test_signals_need_no_conversation(bus):
    bus.publish("signal:go", BusMessage(topic="signal:go", payload={"n": 1}))

    assert numbers(bus.read("signal:go")) == [1]
    assert Conversation.objects.count() == 0


@pytest.mark.parametrize("topic", ["c1", "chat:", "chat: ", "other:c1", ":c1"])
def test_wrong_topics_are_refused(bus, topic):
    with pytest.raises(Invalid):
        bus.publish(topic, message(1))
    with pytest.raises(Invalid):
        bus.read(topic)


@pytest.mark.parametrize("topic", TOPICS)
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


@pytest.mark.parametrize("topic", TOPICS)
def test_blocking_answers_nothing_after_its_time(bus, topic):
    ids = publish(bus, topic, 1)

    start = time.monotonic()
    assert bus.read_blocking(topic, last_id=ids[0], block_ms=50) == []
    assert time.monotonic() - start >= 0.05


def test_blocking_answers_at_once_what_is_there(bus):
    ids = publish(bus, "chat:c1", 1, 2)

    assert numbers(bus.read_blocking("chat:c1", last_id=ids[0], block_ms=60_000)) == [2]


def test_one_envelope_on_two_topics_is_one_event():
    bus = LogBus(principals.SYSTEM)
    payload = {"type": "message", "id": "e1", "conversation_id": "c1", "sender": "agent:A", "content": "x"}

    bus.publish("chat:c1", BusMessage(topic="chat:c1", payload=payload))
    bus.publish("chat:Dialogue", BusMessage(topic="chat:Dialogue", payload=payload))

    assert log.head("c1") == 1
    assert bus.read("chat:Dialogue")[0].payload == payload
