"""The relay: posts reach Redis after their commit, at least once, and their echo is no second event."""

import json
import random
import uuid

import pytest

from conversations.core.ids import copy_id
from conversations.transport.recorder.relay import wire_text
from tests.support.live import until
from tests.support.nursery import ended
from tests.support.recorders import add, envelope, stored
from tests.support.shares import amount_of

ENVELOPE = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"


def publish(nursery, place, topic, payload, bus_id):
    """Publish as our processes do, by the log."""
    nursery.run(place, "publish", json.dumps([[topic, payload, bus_id]]))


def unsent(place):
    return place.value("SELECT COUNT(*) FROM conversations_post WHERE sent_at IS NULL")


def test_a_post_reaches_redis_under_its_own_ids_and_its_echo_is_dropped(nursery, place, bus):
    publish(nursery, place, "chat:conv", envelope("conv", 1), "bus-1")
    publish(nursery, place, "signal:go", {"event": "signal", "payload": 1}, "bus-2")
    publish(nursery, place, "stream:conv", {"event": "log", "text": "stays"}, "bus-3")
    nursery.record(place)
    until(lambda: place.rows("SELECT * FROM conversations_post") and not unsent(place))

    ((_, fields),) = bus.xrange("chat:conv")
    ((_, signal),) = bus.xrange("signal:go")
    read_to = "SELECT last_id FROM conversations_redisposition WHERE stream='chat:conv'"
    until(
        lambda: place.rows(read_to) and place.rows(read_to)[0][0] == bus.xinfo_stream("chat:conv")["last-generated-id"]
    )

    assert (fields["id"], json.loads(fields["payload"])) == ("bus-1", envelope("conv", 1))
    assert fields["payload"] == json.dumps(envelope("conv", 1), separators=(",", ":"))
    assert signal["id"] == "bus-2"
    assert not bus.exists("stream:conv")
    assert stored(place) == 2
    assert place.rows("SELECT * FROM conversations_quarantine") == []


@pytest.mark.parametrize(
    ("body", "wire"),
    [
        ('{"a": [1.0, 1e400], "b" : "x y"}', '{"a":[1.0,1e400],"b":"x y"}'),
        ('{"é":"Straße 😀"}', r'{"\u00e9":"Stra\u00dfe \ud83d\ude00"}'),
        (r'{"a":"\u00e9\n\" :"}', r'{"a":"\u00e9\n\" :"}'),
    ],
)
def test_a_payload_on_redis_is_compact_and_ascii(body, wire):
    assert wire_text(body) == wire


def test_each_copy_of_a_message_has_a_bus_id_that_is_a_uuid():
    first, second, third = (copy_id(ENVELOPE, n) for n in range(3))

    assert first == ENVELOPE
    assert [str(uuid.UUID(id_)) for id_ in (second, third)] == [second, third]
    assert len({first, second, third, copy_id(second, 1)}) == 4


def test_what_came_from_redis_is_not_sent_back(nursery, place, bus):
    for n in range(20):
        add(bus, "chat:conv", envelope("conv", n), f"b-{n}")
    child = nursery.record(place)
    until(lambda: stored(place) == 20)
    child.terminate()

    publish(nursery, place, "chat:conv", envelope("conv", 99), "b-99")
    nursery.record(place)
    until(lambda: bus.xlen("chat:conv") == 21)
    until(lambda: not unsent(place))

    assert [fields["id"] for _, fields in bus.xrange("chat:conv")][-1] == "b-99"


def test_a_key_that_is_no_stream_delays_nobody_elses_posts(nursery, place, bus):
    bus.set("chat:taken", "by somebody")
    publish(nursery, place, "chat:taken", envelope("conv", 1), "b-1")
    publish(nursery, place, "chat:conv", envelope("conv", 2), "b-2")
    nursery.record(place)

    until(lambda: bus.exists("chat:conv"))

    until(lambda: unsent(place) == 1)
    assert bus.get("chat:taken") == "by somebody"


@pytest.fixture
def chat_only(bus, place):
    """The place's Redis lets it write `chat:*` keys alone."""
    bus.acl_setuser("relay", enabled=True, passwords=["+secret"], commands=["+@all"], keys=["%R~*", "%W~chat:*"])
    place.redis_url = place.redis_url.replace("redis://", "redis://relay:secret@")
    yield
    bus.acl_deluser("relay")


@pytest.mark.usefixtures("chat_only")
def test_a_topic_that_redis_refuses_has_nothing_else_sent_twice(nursery, place, bus):
    publish(nursery, place, "chat:a", envelope("a", 1), "b-1")
    publish(nursery, place, "signal:go", {"event": "signal", "payload": 1}, "b-2")
    publish(nursery, place, "chat:b", envelope("b", 3) | {"sender": "user:ann"}, "b-3")  # its stream is refused too
    child = nursery.record(place)

    until(lambda: place.rows("SELECT 1 FROM conversations_post") and unsent(place) == 1)
    publish(nursery, place, "chat:a", envelope("a", 4), "b-4")
    until(lambda: unsent(place) == 1 and bus.xlen("chat:a") > 1)

    assert [fields["id"] for _, fields in bus.xrange("chat:a")] == ["b-1", "b-4"]
    assert [fields["id"] for _, fields in bus.xrange("chat:b")] == ["b-3"]
    assert "signal:go" in child.output()


@pytest.fixture
def reading_only(bus):
    """Redis accepts no write for now."""
    bus.config_set("min-replicas-to-write", 1)
    yield
    bus.config_set("min-replicas-to-write", 0)


@pytest.mark.usefixtures("reading_only")
def test_a_write_that_redis_refuses_is_a_warning_until_it_is_sent(nursery, place, bus):
    def state():
        rows = place.rows("SELECT facts FROM conversations_node WHERE kind='recorder'")
        facts = json.loads(rows[0][0]) if rows else {"redis": "", "warnings": []}
        return facts["redis"], len(facts["warnings"])

    publish(nursery, place, "chat:conv", envelope("conv", 1), "b-1")
    child = nursery.record(place)

    until(lambda: state() == ("ok", 1), what="the warning")
    bus.config_set("min-replicas-to-write", 0)
    until(lambda: not unsent(place), what="the post to be sent")
    until(lambda: state() == ("ok", 0), what="the warning to be over")
    assert "recorder: relay works again" in child.output()


def test_streams_are_trimmed_only_when_asked(nursery, place, bus):
    for n in range(1, 301):
        add(bus, "chat:conv", envelope("conv", n), f"b-{n}")
    publish(nursery, place, "chat:conv", envelope("conv", 301), "b-301")
    nursery.record(place, BUS_STREAM_MAXLEN="100")

    until(lambda: not unsent(place))

    assert 100 <= bus.xlen("chat:conv") < 301


def relayed(nursery, place, bus, failpoint, kills):
    """Kill the relay `kills` times; return how often each post came out."""
    dice = random.Random(kills)
    sent = []
    for kill in range(kills):
        names = [f"p-{kill}-{n}-{uuid.uuid4().hex[:6]}" for n in range(dice.randint(1, 3))]
        sent += names
        payloads = [["chat:conv", envelope("conv", name), name] for name in names]
        nursery.run(place, "publish", json.dumps(payloads))
        child = nursery.record(place, failpoint=f"{failpoint}:1")
        assert ended(child) == -9, child.output()
    last = nursery.record(place)
    until(lambda: not unsent(place))
    end = bus.xinfo_stream("chat:conv")["last-generated-id"]
    until(lambda: place.rows(f"SELECT 1 FROM conversations_redisposition WHERE last_id='{end}'"))
    assert last.terminate() == 0
    names = [fields["id"] for _, fields in bus.xrange("chat:conv")]
    assert set(names) == set(sent), "a post is lost"
    assert stored(place) == len(sent), "an echo is stored twice"
    nursery.run(place, "verify")
    return names


@pytest.mark.thorough
@pytest.mark.crash
@pytest.mark.parametrize("failpoint", ["before-xadd", "after-xadd"])
def test_every_post_reaches_redis_when_the_relay_is_killed(either, bus, failpoint):
    names = relayed(*either, bus, failpoint, 10)

    assert (len(names) == len(set(names))) == (failpoint == "before-xadd")


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("failpoint", ["before-xadd", "after-xadd"])
def test_every_post_reaches_redis_in_a_hundred_kills(either, bus, failpoint, record_property):
    kills = amount_of(100)

    names = relayed(*either, bus, failpoint, kills)

    record_property("amount", f"{kills} kills, {len(set(names))} posts, 0 lost, {len(names)} entries on Redis")
