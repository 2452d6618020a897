"""SIGKILL of the recorder and of the relay at named lines under load, judged by the producer's own ledger."""

import random

import pytest

from tests.live import until
from tests.nursery import ended
from tests.recorders import Producer, judge, stored

FAILPOINTS = ("after-read", "before-commit", "after-commit", "before-doorbell")


def killed(nursery, place, server, failpoint, kills, seed):
    """Kill a recorder under load `kills` times; answer how many messages were sent and are all there."""
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
    until(lambda: stored(place) >= len(producer.ledger), within=30, what="the last recorder to catch up")
    assert last.terminate() == 0, last.output()
    judge(nursery, place, producer.ledger)
    return len(producer.ledger)


@pytest.mark.crash
@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_nothing_is_lost_or_doubled_when_the_recorder_is_killed(either, redis_server, failpoint):
    assert killed(*either, redis_server, failpoint, 25, 1) > 250


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_nothing_is_lost_or_doubled_in_250_kills(either, redis_server, failpoint):
    assert killed(*either, redis_server, failpoint, 250, 2) > 2000
