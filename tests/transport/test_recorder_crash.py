"""SIGKILL of the recorder and of the relay at named lines under load, judged by the producer's own ledger."""

import random

import pytest

from tests.support.live import until
from tests.support.nursery import ended
from tests.support.recorders import Producer, add, envelope, judge, stored
from tests.support.shares import amount_of, seed
from tests.support.tiers import rounds, variants

FAILPOINTS = ("after-read", "before-commit", "after-commit", "before-notification")


def killed(nursery, place, server, failpoint, kills, seed):
    """Kill a recorder under load `kills` times; return how many messages were sent and are all there."""
    dice = random.Random(seed)
    producer = Producer(server)
    producer.start()
    try:
        for _ in range(kills):
            child = nursery.record(place, failpoint=f"{failpoint}:{dice.randint(1, 3)}")
            assert ended(child) == -9, child.output()
    finally:
        producer.stop()
    last = nursery.record(place)
    until(lambda: stored(place) >= len(producer.ledger), within=60, what="the last recorder to catch up")
    assert last.terminate() == 0, last.output()
    judge(nursery, place, producer.ledger)
    return len(producer.ledger)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize("failpoint", variants(FAILPOINTS))
def test_nothing_is_lost_or_doubled_when_the_recorder_is_killed(either, redis_server, failpoint):
    kills = rounds(4, 50)

    assert killed(*either, redis_server, failpoint, kills, 1) > 4 * kills


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize("failpoint", variants(FAILPOINTS))
def test_nothing_is_lost_or_doubled_in_250_kills(either, redis_server, failpoint, record_property):
    kills = amount_of(250)

    sent = killed(*either, redis_server, failpoint, kills, 2 + seed())

    record_property("amount", f"{kills} kills, {sent:,} sent, 0 lost, 0 doubled")
    assert sent > 8 * kills


@pytest.mark.slow
def test_a_refused_entry_is_told_of_with_the_position_that_passed_it(either, bus):
    nursery, place = either
    add(bus, "chat:conv", envelope("conv", 1), "bus-1")
    add(bus, "chat:conv", envelope("conv", 1, content="other words"), "bus-2")

    killed_first = nursery.record(place, failpoint="after-commit:1")
    assert ended(killed_first) == -9, killed_first.output()
    add(bus, "chat:conv", envelope("conv", 2), "bus-3")
    nursery.record(place)
    until(lambda: "m-2" in str(place.events()), what="the next recorder to go on")

    assert [gap["why"] for gap in place.gaps()] == ["its id was already stored with a different payload"]
    assert place.rows("SELECT source,conversation FROM conversations_quarantine") == [("chat:conv", "conv")]
