"""Loss on Redis is told (law D): what was trimmed, deleted or flushed before it was read, and nothing else."""

import random
import time

import pytest

from conversations.transport.recorder import gap_detection
from conversations.transport.recorder.gap_detection import UNCOUNTED, Info
from conversations.transport.recorder.streams import Stream
from tests.support.live import until
from tests.support.recorders import Producer, add, envelope, judge, stored
from tests.support.services import RedisServer, running
from tests.support.shares import amount_of, seed

AOF = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


def fill(bus, topic, numbers):
    return [add(bus, topic, envelope("conv", n), f"{topic}-{n}") for n in numbers]


def recorded_then_stopped(nursery, place, count):
    child = nursery.record(place)
    until(lambda: stored(place) >= count, within=60)
    assert child.terminate() == 0, child.output()


def one_gap(place):
    (gap,) = until(place.gaps)
    return gap


@pytest.mark.thorough
def test_what_was_trimmed_under_a_stopped_recorder_is_counted(nursery, place, bus):
    last = fill(bus, "stream:conv", range(5))[-1]
    recorded_then_stopped(nursery, place, 5)

    fill(bus, "stream:conv", range(5, 25))
    bus.xtrim("stream:conv", maxlen=8, approximate=False)
    nursery.record(place)
    until(lambda: stored(place) == 5 + 1 + 8)

    gap = one_gap(place)
    assert (gap["reason"], gap["lost"], gap["after"], gap["topic"]) == ("trimmed", 12, last, "stream:conv")
    assert [kind for _, _, kind, *_ in place.events()] == ["message"] * 5 + ["record.gap"] + ["message"] * 8
    principals = {principal for _, _, kind, principal, _ in place.events() if kind == "record.gap"}
    assert principals == {"system"}


def test_what_was_deleted_in_the_middle_is_counted(nursery, place, bus):
    fill(bus, "stream:conv", range(3))
    recorded_then_stopped(nursery, place, 3)

    entries = fill(bus, "stream:conv", range(3, 10))
    bus.xdel("stream:conv", *entries[2:5])
    nursery.record(place)

    gap = one_gap(place)
    assert (gap["lost"], gap["since"], gap["before"]) == (3, None, entries[-1]), "they were before the last one read"
    assert stored(place) == 3 + 4 + 1


def test_a_stream_emptied_under_a_stopped_recorder_is_told_with_its_number(nursery, place, bus):
    fill(bus, "stream:conv", range(3))
    recorded_then_stopped(nursery, place, 3)

    fill(bus, "stream:conv", range(3, 7))
    bus.xtrim("stream:conv", maxlen=0, approximate=False)
    nursery.record(place)

    assert (one_gap(place)["reason"], one_gap(place)["lost"]) == ("trimmed", 4)
    fill(bus, "stream:conv", [7])
    until(lambda: stored(place) == 3 + 1 + 1)
    assert len(place.gaps()) == 1


def test_a_deleted_stream_is_told_and_its_successor_is_recorded(nursery, place, bus):
    fill(bus, "stream:conv", range(3))
    fill(bus, "stream:else", [9])
    nursery.record(place)
    until(lambda: stored(place) == 4)

    bus.delete("stream:conv")
    gap = one_gap(place)
    fill(bus, "stream:conv", range(3, 6))
    until(lambda: stored(place) == 4 + 1 + 3)

    assert (gap["reason"], gap["lost"], gap["topic"]) == ("deleted", None, "stream:conv")
    assert len(place.gaps()) == 1


def test_a_stream_deleted_and_made_again_at_once_is_told(nursery, place, bus):
    fill(bus, "stream:conv", range(10))
    recorded_then_stopped(nursery, place, 10)

    bus.delete("stream:conv")
    fill(bus, "stream:conv", range(10, 13))
    nursery.record(place)
    until(lambda: stored(place) == 10 + 1 + 3)

    assert one_gap(place)["reason"] == "deleted"


def test_a_stream_made_again_under_a_reading_recorder_is_told_with_times_in_order(nursery, place, bus):
    fill(bus, "stream:conv", range(10))
    nursery.record(place)
    until(lambda: stored(place) == 10)

    again = bus.pipeline(transaction=True)
    again.flushall()
    add(again, "stream:conv", envelope("conv", 10), "stream:conv-10")
    again.execute()
    until(lambda: stored(place) >= 11)
    fill(bus, "stream:conv", [11])
    until(lambda: stored(place) == 10 + 2 + 1)

    gap = one_gap(place)
    (first, _), *_ = bus.xrange("stream:conv")
    assert (gap["reason"], gap["before"]) == ("deleted", first)
    assert gap["since"] is None or gap["since"] <= gap["until"]


def test_a_flushed_redis_is_told_in_every_conversation_and_goes_on(nursery, place, bus):
    for n in range(4):
        add(bus, f"stream:c{n}", {"event": "log", "text": "x"}, f"b{n}")
    nursery.record(place)
    until(lambda: stored(place) == 4)

    bus.flushall()
    until(lambda: len(place.gaps()) == 4)
    add(bus, "stream:c1", {"event": "log", "text": "after"}, "b9")
    until(lambda: stored(place) == 4 + 4 + 1)

    assert {gap["reason"] for gap in place.gaps()} == {"emptied"}
    assert [kind for _, _, kind, *_ in place.events("c1")] == ["log", "record.gap", "log"]


def test_an_agents_stream_is_told_of_on_the_quarantine_page(nursery, place, bus):
    fill(bus, "chat:Agent", range(3))
    recorded_then_stopped(nursery, place, 3)

    fill(bus, "chat:Agent", range(3, 9))
    bus.xtrim("chat:Agent", maxlen=2, approximate=False)
    nursery.record(place)
    until(lambda: stored(place) == 5)

    ((source, reason),) = place.rows("SELECT source,reason FROM conversations_quarantine")
    assert source == "chat:Agent"
    assert reason == "record.gap: 4 entries are lost: " + gap_detection.WHY["trimmed"]
    assert place.gaps() == []


def test_ids_that_went_back_are_told_and_what_comes_is_read(nursery, place, bus):
    bus.xadd("stream:conv", {"id": "b1", "payload": '{"event":"log","text":"1"}'}, id="9000000000000-0")
    recorded_then_stopped(nursery, place, 1)

    bus.delete("stream:conv")
    add(bus, "stream:conv", {"event": "log", "text": "2"}, "b2")
    nursery.record(place)
    until(lambda: stored(place) == 3)

    assert (one_gap(place)["reason"], one_gap(place)["until"]) == ("went_back", None)
    assert [body.get("text") for *_, body in place.events()] == ["1", None, "2"]


@pytest.mark.parametrize("options", [AOF, ("--save", "", "--appendonly", "no")], ids=["with AOF", "without"])
def test_redis_killed_and_restarted(nursery, options):
    with running(RedisServer(*options)) as server:
        place = nursery.place(server.url)
        bus = server.client()
        fill(bus, "stream:conv", range(5))
        child = nursery.record(place)
        until(lambda: stored(place) == 5)

        server.kill()
        time.sleep(0.5)  # it looks for Redis meanwhile
        server.start()
        began = time.monotonic()
        fill(bus, "stream:conv", range(5, 9))
        gone = 0 if options == AOF else 1
        until(lambda: stored(place) == 9 + gone, within=60)

        assert time.monotonic() - began <= 20
        assert [gap["reason"] for gap in place.gaps()] == ["deleted"] * gone
        assert child.returncode is None
        assert child.output().count("WARNING") <= 4, child.output()
        bus.close()
        nursery.clear(place)


def hang(nursery, redis_server, place, seconds):
    producer = Producer(redis_server)
    nursery_child = nursery.record(place)
    producer.start()
    until(lambda: place.rows("SELECT 1 FROM conversations_event LIMIT 1"))
    redis_server.hang()
    time.sleep(seconds)
    redis_server.go_on()
    began = time.monotonic()
    sent = len(producer.ledger)
    until(lambda: len(producer.ledger) > sent + 20, within=60)
    producer.stop()
    until(lambda: stored(place) >= len(producer.ledger), within=60)
    assert time.monotonic() - began <= 20
    assert nursery_child.returncode is None
    judge(nursery, place, producer.ledger)
    return len(producer.ledger)


@pytest.mark.slow
def test_redis_hung_for_a_while_loses_nothing_and_is_no_gap(nursery, redis_server, place, bus):
    hang(nursery, redis_server, place, 3.5)


@pytest.mark.faults
def test_redis_hung_for_half_a_minute_loses_nothing(nursery, redis_server, place, bus, record_property):
    sent = hang(nursery, redis_server, place, 30)

    record_property("amount", f"30 s, {sent:,} sent, 0 lost, 0 doubled")


def resume_cleanly(bus, seed, times):
    """Read, stop and resume at random places of living streams as the recorder does; return the false alarms."""
    dice = random.Random(seed)
    stream, alarms = Stream(b"stream:clean", "stream:clean", "0-0", 0, 0), 0
    for number in range(times):
        for _ in range(dice.randrange(4)):
            bus.xadd("stream:clean", {"payload": number})
        if dice.random() < 0.2:  # what was read may go
            bus.xtrim("stream:clean", minid=stream.last_id, approximate=False)
        if dice.random() < 0.05:
            bus.xtrim("stream:clean", minid=gap_detection.ids.order(stream.last_id)[0] + 1) if is_at_end(
                bus, stream
            ) else None
        for _, items in bus.xread({"stream:clean": stream.last_id}, count=dice.randrange(1, 6)):
            stream.last_id, stream.entries_read = items[-1][0], stream.entries_read + len(items)
        alarms += gap_detection.find_loss(stream, described(bus)) is not None
    return alarms


def is_at_end(bus, stream):
    return bus.exists("stream:clean") and bus.xinfo_stream("stream:clean")["last-generated-id"] == stream.last_id


def described(bus):
    if not bus.exists("stream:clean"):
        return Info(0, "0-0", 0, None, None)
    info = bus.xinfo_stream("stream:clean")
    first = info["first-entry"][0] if info["first-entry"] else None
    return Info(info["length"], info["last-generated-id"], info["entries-added"], first, None)


@pytest.mark.slow
def test_clean_resumes_raise_no_alarm(bus):
    assert resume_cleanly(bus, 1, 500) == 0


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_ten_thousand_clean_resumes_raise_no_alarm(bus, record_property):
    resumes = amount_of(10_000)

    alarms = resume_cleanly(bus, 2 + seed(), resumes)

    record_property("amount", f"{resumes:,} resumes, {alarms} false alarms")
    assert alarms == 0


@pytest.mark.slow
def test_restarts_of_the_recorder_itself_raise_no_alarm(nursery, redis_server, place, bus):
    producer = Producer(redis_server)
    producer.start()
    for _ in range(10):
        child = nursery.record(place)
        before = stored(place)
        until(lambda: stored(place) > before)  # noqa: B023
        bus.xtrim("stream:c0", minid=place.value("SELECT last_id FROM conversations_redisposition LIMIT 1"))
        assert child.terminate() == 0
    producer.stop()

    assert place.gaps() == []
    assert place.rows("SELECT * FROM conversations_quarantine") == []


@pytest.mark.parametrize(
    ("last_id", "info", "reason"),
    [
        ("5-0", Info(3, "8-0", None, "6-0", None), "perhaps_trimmed"),
        ("5-0", Info(3, "8-0", None, "4-0", None), None),
        ("5-0", Info(0, "8-0", None, None, None), "perhaps_trimmed"),
        ("5-0", Info(0, "5-0", None, None, None), None),
        ("0-0", Info(3, "8-0", None, "6-0", None), None),
        ("5-1", Info(3, "8-0", None, "5-2", None), None),
        ("9-0", Info(3, "8-0", None, "6-0", None), "went_back"),
    ],
)
def test_a_redis_that_does_not_count_is_read_honestly(last_id, info, reason):
    loss = gap_detection.find_loss(Stream(b"s", "s", last_id, UNCOUNTED, 0), info)

    assert (loss and loss.reason) == reason
    assert loss is None or loss.lost is None
    if reason == "perhaps_trimmed":  # told once: from where it goes on nothing is missing
        stream = Stream(b"s", "s", loss.move_to[0], UNCOUNTED, 0)
        assert gap_detection.find_loss(stream, info) is None


@pytest.mark.parametrize(
    ("info", "lost"),
    [
        (Info(2, "3-0", 3, "2-0", None), None),
        (Info(1, "3-0", 3, "3-0", None), 1),
        (Info(0, "2-0", 2, None, None), 1),
        (Info(0, "1-0", 2, None, None), 1),
    ],
)
def test_a_single_lost_entry_is_counted(info, lost):
    loss = gap_detection.find_loss(Stream(b"s", "s", "1-0", 1, 0), info)

    assert (loss and loss.lost) == lost


@pytest.mark.parametrize(
    ("last_id", "read", "info"),
    [
        ("9-0", 5, Info(2, "9-0", 2, "8-0", None)),  # deleted, made again, and read on before it was noticed
        ("8-5", 5, Info(2, "9-0", 2, "8-0", None)),
        ("9-0", 5, Info(6, "9-0", 7, "1-0", None)),  # deleted in the middle
        ("9-0", 5, Info(3, "8-0", 5, "6-0", None)),  # an older state
    ],
)
def test_a_loss_does_not_end_before_it_began(last_id, read, info):
    loss = gap_detection.find_loss(Stream(b"s", "s", last_id, read, 0), info)

    assert loss is not None
    assert None in (loss.after, loss.before)
