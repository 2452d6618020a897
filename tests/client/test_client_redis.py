"""`RedisBus` on the wire: byte for byte what magent2 writes and reads, with a real Redis."""

import json
import sys
from collections.abc import Iterator

import pytest
import redis

from switchboard import BusMessage, NotConfigured, RedisBus, Refused, UnknownPosition, Unreachable
from tests.support.live import until
from tests.support.services import RedisServer, running


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One Redis for the module."""
    with running(RedisServer()) as started:
        assert isinstance(started, RedisServer)
        yield started


@pytest.fixture
def raw(server: RedisServer) -> Iterator[redis.Redis]:
    """A plain client."""
    with server.client() as client:
        yield client


@pytest.fixture
def bus(server: RedisServer) -> Iterator[RedisBus]:
    """A bus that has seen nothing yet."""
    with RedisBus(server.url) as bus:
        yield bus


def message(topic: str, n: int) -> BusMessage:
    """Make a message that says its number."""
    return BusMessage(topic, {"n": n})


def test_entry_is_an_id_and_compact_ascii_json_under_the_topic(bus: RedisBus, raw: redis.Redis, topic: str) -> None:
    bus.publish(topic, BusMessage(topic, {"b": [1, None], "a": "żółć"}, "the-id"))

    ((_, fields),) = raw.xrange(topic)
    assert list(fields.items()) == [("id", "the-id"), ("payload", '{"b":[1,null],"a":"\\u017c\\u00f3\\u0142\\u0107"}')]


def test_entry_of_another_program_is_read(bus: RedisBus, raw: redis.Redis, topic: str) -> None:
    raw.xadd(topic, {"id": "0b9e", "payload": json.dumps({"content": "hello"}), "more": "kept out"})

    assert bus.read(topic) == [BusMessage(topic, {"content": "hello"}, "0b9e")]


def test_entry_without_an_id_has_the_entrys(bus: RedisBus, raw: redis.Redis, topic: str) -> None:
    entry = raw.xadd(topic, {"payload": "{}"})

    assert [got.id for got in bus.read(topic)] == [entry]
    assert bus.read(topic, last_id=str(entry)) == []


@pytest.mark.parametrize("payload", ["{", "", "[1]", "null", "[" * 100_000, b"\xff"])
def test_bad_payload_is_read_as_empty_and_told(
    bus: RedisBus, raw: redis.Redis, topic: str, payload: str, caplog: pytest.LogCaptureFixture
) -> None:
    raw.xadd(topic, {"id": "bad", "payload": payload})
    raw.xadd(topic, {"id": "good", "payload": "{}"})

    assert [(got.id, got.payload) for got in bus.read(topic)] == [("bad", {}), ("good", {})]
    assert "no JSON object" in caplog.text


def test_place_is_an_entrys_id_or_a_messages(server: RedisServer, bus: RedisBus, raw: redis.Redis, topic: str) -> None:
    ids = [bus.publish(topic, message(topic, n)) for n in range(3)]
    entry = str(raw.xrange(topic)[0][0])

    with RedisBus(server.url) as fresh:  # knows no id, and scans
        assert fresh.read(topic, last_id=ids[0]) == fresh.read(topic, last_id=entry) == bus.read(topic, last_id=ids[0])
        assert [got.payload["n"] for got in fresh.read(topic, last_id=entry)] == [1, 2]


def test_message_published_again_skips_nothing_for_who_has_read_it_once(bus: RedisBus, topic: str) -> None:
    first = message(topic, 0)
    bus.publish(topic, first)
    (read,) = bus.read(topic)
    bus.publish(topic, message(topic, 1))

    bus.publish(topic, first)  # as after an answer that was lost

    assert [got.payload["n"] for got in bus.read(topic, last_id=read.id)] == [1, 0]
    assert bus.read(topic, last_id=read.id) == []


def test_scan_goes_through_more_than_one_chunk(server: RedisServer, raw: redis.Redis, topic: str) -> None:
    pipeline = raw.pipeline()
    for n in range(2_500):
        pipeline.xadd(topic, {"id": f"id-{n}", "payload": f'{{"n":{n}}}'})
    pipeline.execute()

    with RedisBus(server.url) as fresh:
        assert [got.payload["n"] for got in fresh.read(topic, last_id="id-2490")] == list(range(2_491, 2_500))


@pytest.mark.parametrize("how", ["trim", "delete", "flush"])
def test_place_that_is_gone_is_told_not_skipped(bus: RedisBus, raw: redis.Redis, topic: str, how: str) -> None:
    ids = [bus.publish(topic, message(topic, n)) for n in range(5)]
    entry = str(raw.xrange(topic)[0][0])

    if how == "trim":
        raw.xtrim(topic, maxlen=2, approximate=False)
    elif how == "delete":
        raw.delete(topic)
    else:
        raw.flushall()

    for place in (ids[0], entry):
        with pytest.raises(UnknownPosition):
            bus.read(topic, last_id=place)
        with pytest.raises(UnknownPosition):
            bus.read_blocking(topic, last_id=place, block_ms=10)


def test_stream_is_trimmed_only_when_asked_for(
    bus: RedisBus, raw: redis.Redis, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("", "0", "-5", "many"):
        monkeypatch.setenv("BUS_STREAM_MAXLEN", value)
        for n in range(100):
            bus.publish(topic, message(topic, n))
    assert raw.xlen(topic) == 400

    monkeypatch.setenv("BUS_STREAM_MAXLEN", "10")
    bus.publish(topic, message(topic, 0))

    assert raw.xlen(topic) < 400


def test_refused_trim_is_appended_untrimmed(
    server: RedisServer, raw: redis.Redis, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUS_STREAM_MAXLEN", str(1 << 70))  # no number that Redis takes

    with RedisBus(server.url) as bus:
        bus.publish(topic, message(topic, 1))

    assert raw.xlen(topic) == 1


def test_groups_of_others_lose_nothing(bus: RedisBus, raw: redis.Redis, topic: str) -> None:
    raw.xgroup_create(topic, "workers", id="0", mkstream=True)
    ids = [bus.publish(topic, message(topic, n)) for n in range(3)]
    bus.read(topic)

    ((_, entries),) = raw.xreadgroup("workers", "one", {topic: ">"})

    assert [fields["id"] for _, fields in entries] == ids


def test_redis_that_is_away_is_unreachable_and_comes_back() -> None:
    with running(RedisServer()) as server, RedisBus(server.url) as bus:
        assert isinstance(server, RedisServer)
        server.kill()
        with pytest.raises(Unreachable):
            bus.publish("chat:c1", message("chat:c1", 1))
        with pytest.raises(Unreachable):
            bus.read_blocking("chat:c1", block_ms=10)

        server.start()

        assert bus.publish("chat:c1", message("chat:c1", 1))


def test_hung_redis_is_unreachable_and_goes_on() -> None:
    with running(RedisServer()) as server, RedisBus(server.url, timeout_s=0.2) as bus:
        assert isinstance(server, RedisServer)
        first = bus.publish("chat:c1", message("chat:c1", 1))
        server.hang()
        with pytest.raises(Unreachable):
            bus.read_blocking("chat:c1", last_id=first, block_ms=60_000)

        server.go_on()

        second = bus.publish("chat:c1", message("chat:c1", 2))
        assert [got.id for got in bus.read("chat:c1", last_id=first)] == [second]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)

    with pytest.raises(NotConfigured, match=r"switchboard-client\[redis\]"):
        RedisBus("redis://127.0.0.1")


@pytest.fixture
def troubled() -> Iterator[RedisServer]:
    """A Redis of one test, which is changed."""
    with running(RedisServer()) as started:
        assert isinstance(started, RedisServer)
        yield started


@pytest.mark.parametrize("longest", ["", "100"])
@pytest.mark.parametrize("trouble", ["memory", "replica", "replicas", "disk"])
def test_redis_that_writes_nothing_now_is_unreachable(
    troubled: RedisServer, topic: str, trouble: str, longest: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setenv("BUS_STREAM_MAXLEN", longest)
    with RedisBus(troubled.url) as bus, troubled.client() as raw:
        bus.publish(topic, message(topic, 0))
        if trouble == "memory":
            raw.config_set("maxmemory", 1)
        elif trouble == "replica":
            raw.execute_command("REPLICAOF", "127.0.0.1", "1")
        elif trouble == "replicas":
            raw.config_set("min-replicas-to-write", 1)
        else:
            raw.config_set("save", "900 1")
            (troubled.home / "dump.rdb").mkdir()  # no file can take its place
            raw.bgsave()
            until(lambda: raw.info("persistence")["rdb_last_bgsave_status"] == "err", what="the save to fail")

        with pytest.raises(Unreachable):
            bus.publish(topic, message(topic, 1))

    assert "untrimmed" not in caplog.text


@pytest.mark.parametrize("trouble", ["user", "password", "kind"])
def test_redis_that_refuses_for_good_says_so(troubled: RedisServer, topic: str, trouble: str) -> None:
    with troubled.client() as raw:
        raw.execute_command("ACL", "SETUSER", "agent", "on", ">secret", "~other:*", "+@all")
        raw.set(topic, "no stream")
    name = {"user": "agent:secret@", "password": "agent:wrong@", "kind": ""}[trouble]

    with RedisBus(f"redis://{name}127.0.0.1:{troubled.port}/0") as bus:
        with pytest.raises(Refused):
            bus.publish(topic, message(topic, 1))
        with pytest.raises(Refused):
            bus.read(topic)
