"""One recorder is active, another stands by; two at once do no harm."""

import signal

import pytest

from tests.support.live import until
from tests.support.recorders import Producer, add, envelope, judge, stored

pytestmark = pytest.mark.usefixtures("bus")


def active(place):
    """Return how many tell that they are the active one, and how many there are."""
    rows = place.rows("SELECT facts FROM conversations_node WHERE kind='recorder'")
    return sum('"active": true' in facts for (facts,) in rows), len(rows)


@pytest.fixture
def postgres_place(postgres_nursery, redis_server):
    place = postgres_nursery.place(redis_server.url)
    yield place
    postgres_nursery.clear(place)


def test_the_standby_takes_over_when_the_active_one_is_killed(postgres_nursery, postgres_place, bus):
    place = postgres_place
    first = postgres_nursery.record(place)
    add(bus, "chat:conv", envelope("conv", 1))
    until(lambda: stored(place) == 1)
    postgres_nursery.record(place)
    until(lambda: active(place)[1] == 2)

    first.kill()
    add(bus, "chat:conv", envelope("conv", 2))

    until(lambda: stored(place) == 2, within=60)


def test_the_standby_takes_over_at_once_when_the_active_one_stops_in_order(postgres_nursery, postgres_place, bus):
    place = postgres_place
    first = postgres_nursery.record(place)
    add(bus, "chat:conv", envelope("conv", 1))
    until(lambda: stored(place) == 1)
    second = postgres_nursery.record(place)
    until(lambda: active(place)[1] == 2)

    assert first.terminate() == 0, first.output()
    add(bus, "chat:conv", envelope("conv", 2))

    until(lambda: stored(place) == 2, within=60)
    assert second.terminate() == 0, second.output()


def take_turns(place, producer, recorders):
    """Stop the one, wait for the other to take over, let it go on; four times."""
    for turn in range(4):
        until(lambda: stored(place) >= len(producer.ledger) // 2 > 0)
        asleep, awake = recorders[turn % 2], recorders[1 - turn % 2]
        asleep.signal(signal.SIGSTOP)
        sent = len(producer.ledger)
        until(lambda: stored(place) > sent, within=60, what=f"the other one to take over:\n{awake.output()}")  # noqa: B023
        asleep.signal(signal.SIGCONT)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_stopped_recorder_that_goes_on_stores_nothing_twice(postgres_nursery, postgres_place, redis_server):
    place = postgres_place
    producer = Producer(redis_server)
    producer.start()
    recorders = [postgres_nursery.record(place), postgres_nursery.record(place)]
    try:
        take_turns(place, producer, recorders)
    finally:
        producer.stop()
    until(lambda: stored(place) >= len(producer.ledger), within=60)
    assert [recorder.returncode for recorder in recorders] == [None, None]

    judge(postgres_nursery, place, producer.ledger)
